"""Watching over time: rows fall into windows, windows become estimates, estimates alerts."""
