import numpy as np
import pytest

from app.core.arrays import Floats
from app.core.prevalence.numerics.logs import log_sum

VALUES = np.random.default_rng(3).lognormal(sigma=3.0, size=4003)


class TestLogSum:
    @pytest.mark.parametrize("count", [0, 1, 999, 1000, 4003])
    def test_products_give_the_same_sum(self, count: int) -> None:
        values = VALUES[:count].copy()
        assert log_sum(values) == pytest.approx(np.log(values).sum(), rel=1e-13)
        assert log_sum(values, np.full(count, 2.0)) == pytest.approx(2 * np.log(values).sum())

    @pytest.mark.parametrize(
        "values", [VALUES * 1e-300, VALUES * 1e290, np.concatenate([VALUES * 1e50, [1e-320]])]
    )
    def test_products_out_of_range(self, values: Floats) -> None:
        assert log_sum(values) == pytest.approx(np.log(values).sum(), rel=1e-13)

    def test_zero_and_infinity(self) -> None:
        with np.errstate(divide="ignore"):
            assert log_sum(np.append(VALUES, 0.0)) == -np.inf
        assert log_sum(np.append(VALUES, np.inf)) == np.inf
