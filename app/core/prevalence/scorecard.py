"""What a version's methods were worth on its own validation rows; values only."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats


@dataclass(frozen=True)
class Score:
    """One method.

    ``errors``: mean absolute error of the shares, one per batch in order, NaN where it had no
    answer. ``brier``: mean Brier score of the adjusted posteriors minus that of the calibrated
    ones. ``reason``: why it was not tried, errors then being empty.
    """

    method: str
    errors: Floats
    brier: float | None = None
    reason: str | None = None

    @property
    def mean(self) -> float | None:
        """Mean error over all batches."""
        return float(np.nanmean(self.errors)) if np.isfinite(self.errors).any() else None

    @property
    def standard_error(self) -> float | None:
        """Of that mean."""
        n = np.count_nonzero(np.isfinite(self.errors))
        return float(np.nanstd(self.errors, ddof=1) / np.sqrt(n)) if n > 1 else None


@dataclass(frozen=True)
class Scorecard:
    """Methods tried on batches resampled from the validation rows at other priors, cross-fitted.

    ``sizes`` and ``priors``: rows, and how the priors were drawn, of the batches in order.
    ``chosen``: the method that ``auto`` takes for posteriors, with its ``reason``. ``stopped``:
    whether time ran out before all rounds.
    """

    seed: int
    rows: int
    sizes: tuple[int, ...]
    priors: tuple[str, ...]
    scores: tuple[Score, ...]
    chosen: str
    reason: str
    stopped: bool = False
