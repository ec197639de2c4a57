"""Registered versions in use: their classifiers, and null distributions that are kept."""
