import numpy as np
import pytest

from benchmarks.fit import SETUPS, Setup, p_values


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_alarms_as_often_as_it_says(setup: Setup) -> None:
    """200 runs: three standard errors around 5 % are 0.4 to 9.6 %."""
    for p in p_values(setup, "prior shift", 200 // len(SETUPS), 7):
        assert 0.0 <= np.mean(p <= 0.05) < 0.12
        assert 0.35 < p.mean() < 0.65


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
@pytest.mark.parametrize("kind", ["covariate shift", "contamination"])
def test_sees_what_is_no_prior_shift(setup: Setup, kind: str) -> None:
    by_features, _ = p_values(setup, kind, 15, 8)
    assert np.mean(by_features <= 0.05) >= 0.8
