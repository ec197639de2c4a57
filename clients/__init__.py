"""Clients of the service, each a distribution of its own."""
