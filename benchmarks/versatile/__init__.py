"""The experiments of the versatile decision trees' paper, beside its figures."""
