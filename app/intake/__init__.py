"""Checked JSON to the values of the domain: sources, batches, options."""
