"""Decision trees whose thresholds follow the deployment data (Al-Otaibi et al. 2015)."""
