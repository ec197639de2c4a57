"""Random bodies for every decoder."""
