"""The algorithms and their value types: numpy, scipy and quadprog; no web, no database."""
