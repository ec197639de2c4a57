"""Every way of matching on tiny, equal and far-flung rows of features."""

from dataclasses import dataclass

import numpy as np
import pytest

from app.core.prevalence.matching.version import Exact, MatchingOptions, ReferenceRows
from app.core.prevalence.source import Source, SourceModel, derive
from app.estimation import FeatureBatch, IntervalOptions, Request, estimate
from app.estimation.methods import MATCHING
from app.estimation.solvers import SOFT


@dataclass(frozen=True)
class Rows:
    """The rows of the exact kernels, as derived."""

    model: SourceModel

    def validation(self) -> None:
        """There are no posteriors."""

    def exact(self) -> Exact | None:
        assert self.model.matching is not None
        return self.model.matching.exact_rows

    def null_statistics(self, size: float, seed: int) -> None:
        """Nor a shift test."""


@pytest.mark.parametrize("seed", range(60))
def test_answers_are_shares_and_intervals_hold_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes, width = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    count = int(rng.choice([classes, classes + 3, 60]))
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, count - classes)])
    scale = rng.choice([1e-12, 1.0, 1e12, 1e24])
    rows = (rng.normal(size=(count, width)) + labels[:, None]).round(int(rng.choice([0, 1, 9])))
    rows *= scale
    if seed % 5 == 0:
        rows[:, 0] = 7.0
    if seed % 7 == 0:
        rows[:] = 3.0
    reference = ReferenceRows(labels, rows, tuple("abc"[:width]))
    options = MatchingOptions(
        dimension=int(rng.choice([2, 4, 64])), standardise=bool(rng.random() < 0.5)
    )
    model = derive(Source(tuple("abcdef"[:classes]), reference=reference, matching=options))
    assert model.matching is not None
    assert 0 < model.matching.bandwidth < np.inf
    batch = np.concatenate([rows[: int(rng.integers(1, count + 1))], rows[:1] * 1e5])
    for method in MATCHING:
        for soft in (False, True) if method in SOFT else (False,):
            asked = Request(method, interval=IntervalOptions(), soft=soft)
            found = estimate(model, FeatureBatch(batch), asked, Rows(model))
            p = found.prevalence
            assert (p >= 0).all()
            assert found.interval is not None
            assert (found.interval.lower <= p).all()
            assert (p <= found.interval.upper).all()
            assert found.fit is not None
            assert 0 < found.fit.p_value <= 1
            if not soft:
                assert p.sum() == pytest.approx(1)
                continue
            assert found.unknown is not None
            assert p.sum() + found.unknown.estimate == pytest.approx(1)
            assert found.unknown.lower is not None
            assert found.unknown.upper is not None
            assert 0 <= found.unknown.lower <= found.unknown.estimate <= found.unknown.upper <= 1
