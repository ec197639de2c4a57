"""Trained classifiers as plain parameters: encoding of features, and scores from NumPy alone."""
