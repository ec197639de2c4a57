"""A small, seeded version of the benchmark; the bounds allow for 300 runs."""

import pytest

from app.core.prevalence.calibration import Method
from benchmarks.false_alarms import SHIFTED_SHARE, SOURCE_SHARE, classifiers, simulate

CLASSIFIERS = classifiers(seed=1)


@pytest.mark.parametrize("calibration", ["bcts", "none"])
@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_the_shift_test_does_not_cry_wolf(name: str, calibration: Method) -> None:
    found = simulate(name, CLASSIFIERS[name], calibration, runs=300, seed=1)
    assert 0.015 <= found.alarms <= 0.09
    assert found.raw_alarms > 0.1
    if calibration == "bcts":
        assert found.mean_unshifted == pytest.approx(SOURCE_SHARE, abs=0.006)
        assert found.mean_shifted == pytest.approx(SHIFTED_SHARE, abs=0.016)
