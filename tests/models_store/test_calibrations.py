"""Calibrations survive the way through JSON, and those of older versions are still read."""

import json

import numpy as np
import pytest

from app.core.prevalence.calibration import METHODS, Folds, Method, Scaling, fit, losses, report
from models_store.calibrations import decode, encode, report_from_json, report_to_json


@pytest.mark.parametrize("method", METHODS)
def test_round_trip(method: Method) -> None:
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.ones(3), 200)
    rows[0] = [0, 0, 1]
    labels = np.array([rng.choice(3, p=row) for row in rows])
    calibration = fit(method, rows, labels)
    read = decode(json.loads(json.dumps(encode(calibration), allow_nan=False)), 3)
    np.testing.assert_array_equal(read.apply(rows), calibration.apply(rows))
    assert (read.method, read.floor, read.regularised) == (
        calibration.method,
        calibration.floor,
        calibration.regularised,
    )
    folds = Folds.of(labels, 3)
    assert folds is not None
    told, _ = report("auto", calibration, rows, labels, folds, losses(rows, labels, folds))
    kept = report_from_json(json.loads(json.dumps(report_to_json(told), allow_nan=False)))
    assert kept.losses == told.losses
    assert (kept.asked, kept.rows, kept.folds) == (told.asked, told.rows, told.folds)
    np.testing.assert_array_equal(kept.after.gap, told.after.gap)
    assert kept.before.log_loss == told.before.log_loss


def test_one_scale_for_all_classes_as_it_used_to_be_kept() -> None:
    kept = {"method": "bcts", "scale": 1.5, "bias": [0.1, -0.1], "floor": 0.0, "regularised": False}
    read = decode(kept, 2)
    assert isinstance(read, Scaling)
    assert read.common == 1.5
