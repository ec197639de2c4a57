"""Tests of whether the priors have shifted."""
