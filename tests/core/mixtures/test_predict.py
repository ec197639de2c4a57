"""Predictions of a mixture, against SciPy's normal distribution and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from app.core.errors import InvalidInput
from app.core.mixtures.mixture import RegressionMixture, check_mixture
from app.core.mixtures.predict import predict

MIXTURE = check_mixture([0.3, 0.7], [[1.0, 2.0], [-5.0, 0.5]], [0.5, 1.5])
X = np.linspace(-3, 3, 7)


def test_one_component_has_the_normal_quantiles() -> None:
    one = check_mixture([1.0], [[1.0, 2.0]], [0.5])
    predicted = predict(one, X, levels=(0.001, 0.25, 0.975))
    expected = norm.ppf([0.001, 0.25, 0.975], loc=(1 + 2 * X)[:, None], scale=0.5)
    assert predicted.quantiles == pytest.approx(expected, abs=1e-12)
    assert predicted.mean == pytest.approx(1 + 2 * X)


@settings(max_examples=25, deadline=None)
@given(
    share=st.floats(0, 1),
    gap=st.floats(0, 1e6),
    level=st.floats(1e-6, 1 - 1e-6),
    sigma=st.floats(1e-3, 1e3),
)
def test_the_distribution_function_takes_quantiles_back(
    share: float, gap: float, level: float, sigma: float
) -> None:
    mixture = RegressionMixture(
        np.array([share, 1 - share]), np.array([[0.0, 1.0], [gap, 1.0]]), np.array([sigma, 1.0])
    )
    q = predict(mixture, [0.5], levels=(level,)).quantiles[0, 0]
    slack = 1e-9 * (1 + abs(q))
    low, high = (
        share * norm.cdf((at - 0.5) / sigma) + (1 - share) * norm.cdf(at - 0.5 - gap)
        for at in (q - slack, q + slack)
    )
    assert low - 1e-9 <= level <= high + 1e-9


def test_mean_probabilities_and_density_are_the_mixtures() -> None:
    y = np.linspace(-4, 4, 7)
    predicted = predict(MIXTURE, X, y)
    parts = np.array([0.3, 0.7]) * norm.pdf(y[:, None], predicted.component_means, [0.5, 1.5])
    assert predicted.mean == pytest.approx(0.3 * (1 + 2 * X) + 0.7 * (-5 + 0.5 * X))
    assert predicted.log_density == pytest.approx(np.log(parts.sum(axis=1)))
    expected = parts / parts.sum(axis=1, keepdims=True)
    assert predicted.probabilities == pytest.approx(expected)


def test_without_a_response_the_probabilities_are_the_proportions() -> None:
    predicted = predict(MIXTURE, X)
    assert predicted.log_density is None
    assert predicted.probabilities == pytest.approx(np.tile([0.3, 0.7], (7, 1)))


def test_rows_a_source_does_not_know_and_impossible_levels_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rows of 1 numbers"):
        predict(MIXTURE, [[1.0, 2.0]])
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        predict(MIXTURE, X, levels=(0.5, 95.0))
