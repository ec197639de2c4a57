"""Measurements, each a command: python -m benchmarks.NAME. Results are under docs/results/."""
