"""Every method and interval on tiny, coarse and degenerate versions and batches."""

from dataclasses import dataclass

import numpy as np
import pytest

from app.core.arrays import Floats
from app.core.errors import MethodUnavailable
from app.core.prevalence.calibration import Method as Calibration
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.core.prevalence.tests import two_sample
from app.estimation import METHODS, IntervalOptions, PosteriorBatch, Request, estimate


@dataclass(frozen=True)
class Rows:
    """The validation rows at hand, few replicates of the null statistics."""

    rows: ValidationSet
    model: SourceModel

    def validation(self) -> ValidationSet:
        return self.rows

    def exact(self) -> None:
        """There are no features."""

    def null_statistics(self, size: float, seed: int) -> Floats:
        return two_sample.null_statistics(
            size, self.rows.posteriors, self.rows.labels, self.model.calibration, seed, 20
        )


def coarse(rng: np.random.Generator, rows: int, classes: int) -> Floats:
    """Posteriors of one, two or all digits."""
    shape = np.full(classes, rng.choice([0.1, 0.5, 2.0]))
    found = rng.dirichlet(shape, rows).round(int(rng.choice([1, 2, 16])))
    found[found.sum(axis=1) == 0] = np.eye(classes)[0]
    rescaled: Floats = found / found.sum(axis=1, keepdims=True)
    return rescaled


@pytest.mark.parametrize("calibration", ["bcts", "none"])
@pytest.mark.parametrize("block", range(5))
def test_answers_are_finite_and_intervals_hold_them(block: int, calibration: Calibration) -> None:
    for seed in range(8 * block, 8 * block + 8):
        rng = np.random.default_rng(seed)
        classes = int(rng.integers(1, 6))
        count = int(rng.choice([classes, classes + 3, 30, 100]))
        labels = np.concatenate([np.arange(classes), rng.integers(0, classes, count - classes)])
        validation = ValidationSet(labels.astype(np.intp), coarse(rng, count, classes))
        names = tuple("abcdef"[:classes])
        model = derive(Source(names, validation=validation, calibration=calibration))
        batch = PosteriorBatch(coarse(rng, int(rng.choice([1, 2, 5, 40])), classes))
        for method in METHODS:
            asked = Request(method, interval=IntervalOptions(), posteriors=True)
            try:
                found = estimate(model, batch, asked, Rows(validation, model))
            except MethodUnavailable:
                continue
            p = found.prevalence
            assert found.posteriors is not None
            assert np.isfinite(found.posteriors).all(), (seed, method)
            assert p.sum() == pytest.approx(1), (seed, method)
            assert found.shift is not None
            assert 0 <= found.shift.p_value <= 1, (seed, method)
            if found.interval is not None:
                assert (found.interval.lower <= p).all(), (seed, method)
                assert (p <= found.interval.upper).all(), (seed, method)
