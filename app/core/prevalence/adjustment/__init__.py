"""Posteriors and decisions under other priors."""
