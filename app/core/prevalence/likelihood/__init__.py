"""The likelihood of the target priors: passes over the rows of a batch."""
