"""Estimators of the target priors, a module per method."""
