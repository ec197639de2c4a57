"""Versatile decision trees."""
