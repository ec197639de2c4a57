"""Intervals of every method on versions of two classes, and of classes that nothing tells apart."""

from itertools import product
from typing import Literal, get_args

import numpy as np
import pytest

from app.core.arrays import Codes, Floats
from app.core.errors import MethodUnavailable
from app.core.prevalence.calibration import Method
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.matching.version import ReferenceRows
from app.core.prevalence.source import Source, ValidationSet, derive
from app.core.prevalence.uncertainty.covariance import Of
from app.estimation import METHODS, IntervalOptions, PosteriorBatch, Request, estimate
from app.estimation.request import Batch, FeatureBatch, OutputBatch

Kind = Literal["auto", "wald", "profile", "bootstrap"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LEVELS = (0.5, 0.95, 0.999)


def scored(seed: int, rows: int, share: float, distance: float) -> tuple[Codes, Floats]:
    """Labels and posteriors (at even priors) of two normal classes, both of which occur."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < share).astype(np.intp)
    labels[:2] = [0, 1]
    x = rng.normal(labels * distance, 1.0)
    positive = 1 / (1 + np.exp(-distance * x + distance**2 / 2))
    return labels, np.column_stack([1 - positive, positive])


def batches(posteriors: Floats) -> list[Batch]:
    codes = (posteriors[:, 1] > 0.5).astype(np.intp)
    counts = np.bincount(codes, minlength=2).astype(np.float64)
    labels = np.where(np.arange(len(codes)) % 3 == 0, codes, -1)
    return [
        PosteriorBatch(posteriors),
        PosteriorBatch(posteriors.astype(np.float32)),
        PosteriorBatch(posteriors, labels=labels),
        OutputBatch(counts),
        OutputBatch(counts, codes, labels),
    ]


@pytest.mark.parametrize(("share", "distance"), [(0.0, 3.0), (0.3, 0.7), (1.0, 0.7), (1.0, 3.0)])
@pytest.mark.parametrize("calibration", ["bcts", "none"])
def test_two_classes_have_one_interval(share: float, distance: float, calibration: Method) -> None:
    labels, rows = scored(1, 150, 0.4, distance)
    validation = ValidationSet(labels, rows)
    model = derive(Source(("no", "yes"), validation=validation, calibration=calibration))
    target = scored(2, 42, share, distance)[1][2:]
    told = 0
    for batch, name, kind in product(batches(target), METHODS, KINDS):
        of: Of = "batch" if kind == "profile" else "population"
        options = IntervalOptions(LEVELS[told % 3], kind, of)
        try:
            found = estimate(model, batch, Request(name, interval=options, shift=None))
        except MethodUnavailable:
            continue
        if found.interval is not None:
            told += 1
            lower, upper = found.interval.lower, found.interval.upper
            np.testing.assert_allclose(lower, 1 - upper[::-1], rtol=0, atol=1e-9)
            assert (lower >= 0).all()
            assert (lower <= found.prevalence).all()
            assert (found.prevalence <= upper).all()
    assert told > 30


class TestClassesThatNothingTellsApart:
    """Each may have nothing, or all that the others leave."""

    def test_identical_features(self) -> None:
        labels = np.repeat([0, 1], [200, 150]).astype(np.intp)
        reference = ReferenceRows(labels, np.zeros((350, 3)), ("a", "b", "c"))
        model = derive(Source(("no", "yes"), reference=reference))
        asked = Request("rffm", interval=IntervalOptions())
        found = estimate(model, FeatureBatch(np.zeros((40, 3))), asked).interval
        assert found is not None
        np.testing.assert_array_equal(found.lower, 0)
        np.testing.assert_array_equal(found.upper, 1)

    @pytest.mark.parametrize("method", ["acc", "acc-qp"])
    @pytest.mark.parametrize("kind", ["wald", "bootstrap"])
    def test_twin_rows_of_a_confusion_matrix(
        self, method: str, kind: Literal["wald", "bootstrap"]
    ) -> None:
        counts = np.array([[90.0, 5, 5], [10, 45, 45], [10, 45, 45]])
        names = ("a", "b", "c")
        model = derive(Source(names, confusion=ConfusionMatrix(counts), outputs=names))
        asked = Request(method, interval=IntervalOptions(method=kind))
        found = estimate(model, OutputBatch(np.array([60.0, 20, 20])), asked)
        assert "not-identifiable" in {warning.code for warning in found.warnings}
        assert found.interval is not None
        np.testing.assert_array_equal(found.interval.lower[1:], 0)
        np.testing.assert_allclose(found.interval.upper[1:], 1 - found.interval.lower[0])
        assert 0 < found.interval.lower[0] < found.prevalence[0]
