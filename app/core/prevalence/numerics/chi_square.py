"""The tail of the chi-square distribution."""

from scipy.special import chdtrc


def upper_tail(statistic: float, degrees_of_freedom: int) -> float:
    """P(chi-square > statistic); one when nothing can vary."""
    if degrees_of_freedom == 0:
        return 1.0
    return float(chdtrc(degrees_of_freedom, statistic))
