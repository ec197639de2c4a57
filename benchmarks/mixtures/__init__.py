"""Adaptive mixtures of regressions on the experiments of the paper they come from."""
