"""Mixtures of regressions, and their adaptation to a population with few labelled rows."""
