"""Priorshift: prevalence estimation under prior probability shift."""
