"""Watching a stream of batches against one source model, with few false alarms."""
