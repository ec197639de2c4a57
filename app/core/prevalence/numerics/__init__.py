"""Quadratic programmes and sums of logarithms."""
