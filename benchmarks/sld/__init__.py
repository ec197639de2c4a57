"""When does adjusting help, by the protocol of the SLD reassessment (Esuli et al. 2020)."""
