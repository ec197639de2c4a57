"""Estimates over data sets that need not fit into memory, on this machine or on a cluster."""
