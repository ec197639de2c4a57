"""Intervals, covariances and bootstrap replicates of estimated priors."""
