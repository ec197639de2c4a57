"""Fitting in a process of its own. Only ``fitting``, which only that process loads, has sklearn."""
