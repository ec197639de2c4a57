"""What a version's methods were worth on its own validation rows; values only."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats


@dataclass(frozen=True)
class Score:
    """How one method did.

    ``method``: by its canonical name.
    ``errors``: ≥ 0; mean absolute error of the shares, one per batch in order, NaN where it had no
        answer; empty where it was not tried.
    ``brier``: mean Brier score of the adjusted posteriors minus that of the calibrated ones: below
        zero is better; None where the method has no posteriors.
    ``reason``: why it was not tried; None where it was.
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
        """The standard error of ``mean``, over the batches."""
        n = np.count_nonzero(np.isfinite(self.errors))
        return float(np.nanstd(self.errors, ddof=1) / np.sqrt(n)) if n > 1 else None


@dataclass(frozen=True)
class Scorecard:
    """Methods tried on batches resampled from the validation rows at other priors, cross-fitted.

    ``seed``: gives the batches again.
    ``rows``: of the validation set.
    ``sizes``: rows of the batches in order.
    ``priors``: how the priors of the batches were drawn, in order.
    ``scores``: one per method.
    ``chosen``: the method that ``auto`` takes for posteriors.
    ``reason``: why that one, in words.
    ``stopped``: whether time ran out before all rounds.
    """

    seed: int
    rows: int
    sizes: tuple[int, ...]
    priors: tuple[str, ...]
    scores: tuple[Score, ...]
    chosen: str
    reason: str
    stopped: bool = False
