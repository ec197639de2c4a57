"""Random problems for maximum likelihood, by every entrance, checked by independent routes."""
