"""What several Markov chains say about one number: mean, interval, effective size, agreement.

Source: Gelman et al., "Bayesian Data Analysis" (3rd ed.), §11.4–11.5; Geyer's initial monotone
sequence ends the sum of autocorrelations.
"""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats


@dataclass(frozen=True)
class Summary:
    """One number's posterior.

    ``name``: of the number.
    ``mean``: over all draws.
    ``lower``: end of a central credible interval.
    ``upper``: its other end.
    ``effective_size``: independent draws that would tell its mean as well.
    ``split_rhat``: 1 when the halves of all chains agree; above 1.01 they have not been run long
        enough.
    """

    name: str
    mean: float
    lower: float
    upper: float
    effective_size: float
    split_rhat: float


def summarise(name: str, draws: Floats, level: float = 0.95) -> Summary:
    """``draws`` is chains × draws."""
    lower, upper = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2])
    size, rhat = effective_size(draws)
    return Summary(name, float(draws.mean()), float(lower), float(upper), size, rhat)


def effective_size(draws: Floats) -> tuple[float, float]:
    """Effective sample size and split-R̂ of chains × draws; the full size for a constant."""
    half = draws.shape[1] // 2
    total = float(draws.size)
    if half < 2 or np.ptp(draws) <= 1e-13 * np.abs(draws).max():
        return total, 1.0
    split = np.concatenate([draws[:, :half], draws[:, -half:]])
    within = split.var(axis=1, ddof=1).mean()
    pooled = within * (half - 1) / half + split.mean(axis=1).var(ddof=1)
    rhat = float(np.sqrt(pooled / within)) if within > 0 else float("inf")
    correlations = 1 - (within - _autocovariances(split).mean(axis=0)) / pooled
    pairs = correlations[: 2 * (half // 2)].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    positive = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    time = max(-1 + 2 * float(positive.sum()), 1 / np.log10(total))
    return total / time, rhat


def _autocovariances(draws: Floats) -> Floats:
    """Chains × lags, with n − 1 below the lag 0."""
    size = draws.shape[1]
    spectrum = np.fft.rfft(draws - draws.mean(axis=1, keepdims=True), 2 * size)
    raw = np.fft.irfft(np.abs(spectrum) ** 2, 2 * size)[:, :size]
    return np.asarray(raw / (size - 1))
