"""Simulated streams, for the levels and the delays of alerts."""
