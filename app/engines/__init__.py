"""Engines: the same passes over partitions, on one machine or on several."""
