"""The posterior's draws against closed forms, exact enumeration and their own promises."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_t

from app.core.errors import InvalidInput
from app.core.mixtures.chains import effective_size
from app.core.mixtures.gibbs import MixturePosterior, predict_posterior, sample
from app.core.mixtures.mixture import RegressionMixture, check_mixture
from app.core.mixtures.priors import conditional, priors, sums
from tests.golden import GOLDEN


def one_component(inputs: dict[str, Any]) -> tuple[RegressionMixture, Any, Any]:
    source = check_mixture([1.0], [inputs["beta_source"]], [1.0])
    return source, np.array(inputs["x"]), np.array(inputs["y"])


def draw(source: RegressionMixture, rows: Any, y: Any, **options: Any) -> MixturePosterior:
    return sample(source, rows[:, 1:], y, **options)


def test_one_component_is_the_closed_form_exactly() -> None:
    golden = GOLDEN["A08_conjugate_one_component"]
    source, rows, y = one_component(golden["inputs"])
    expected = golden["expected"]
    given = conditional(priors(source), sums(source, rows, y), np.ones((1, len(y), 1)))
    assert given.shape[0, 0] == expected["sigma2_posterior_shape"]
    assert given.scale[0, 0] == pytest.approx(expected["sigma2_posterior_scale"], abs=1e-9)
    mean = source.coefficients[0] + given.shift(0.0)[0, 0]
    assert mean == pytest.approx(expected["beta_mean"], abs=1e-9)
    root = given.inverse_root[0, 0]
    assert root.T @ root == pytest.approx(np.array(expected["V"]), abs=1e-9)


def test_draws_of_one_component_are_of_the_closed_form() -> None:
    golden = GOLDEN["A08_conjugate_one_component"]
    source, rows, y = one_component(golden["inputs"])
    expected = golden["expected"]
    drawn = draw(source, rows, y, draws=5000, seed=1)
    variance = (drawn.sigmas**2).mean()
    assert variance == pytest.approx(expected["sigma2_mean"], abs=0.015)
    assert drawn.mixture.coefficients[0] == pytest.approx(expected["beta_mean"], abs=0.012)
    betas = drawn.coefficients.reshape(-1, 2)
    assert np.cov(betas.T) == pytest.approx(np.array(expected["beta_covariance"]), abs=0.008)
    assert all(one.split_rhat < 1.01 for one in drawn.summaries)


def test_components_with_one_row_or_none_need_no_inverse() -> None:
    golden = GOLDEN["A10_component_with_few_points"]
    source, rows, y = one_component(golden["inputs"])
    expected = golden["expected"]
    prior, products = priors(source), sums(source, rows, y)
    given = conditional(prior, products, np.ones((1, 1, 1)))
    assert given.shape[0, 0] == expected["sigma2_shape_collapsed"]
    assert given.scale[0, 0] == pytest.approx(expected["sigma2_scale_collapsed"], abs=1e-9)
    mean = source.coefficients[0] + given.shift(0.0)[0, 0]
    assert mean == pytest.approx(expected["beta_mean"], abs=1e-9)
    empty = conditional(prior, products, np.zeros((1, 1, 1)))
    assert (empty.shape[0, 0], empty.scale[0, 0]) == (2.0, 1.0)
    assert empty.shift(0.0)[0, 0] == pytest.approx(np.zeros(2))


def test_proportions_of_components_far_apart_are_the_conjugate_update() -> None:
    golden = GOLDEN["A11_dirichlet"]
    inputs, expected = golden["inputs"], golden["expected"]
    source = check_mixture(inputs["pi_source"], [[-100.0, 1.0], [100.0, 1.0]], [1.0, 1.0])
    random = np.random.default_rng(2)
    x = random.normal(size=20)
    y = source.means(x)[np.arange(20), np.repeat([0, 1], inputs["n_k"])] + random.normal(size=20)
    drawn = sample(source, x, y, priors(source, kappa=inputs["concentration"]), draws=4000)
    assert drawn.mixture.proportions == pytest.approx(expected["mean"], abs=0.005)
    assert drawn.responsibilities.sum(axis=0) == pytest.approx(inputs["n_k"])


def exact_share(source: RegressionMixture, x: Any, y: Any, kappa: float) -> float:
    """E π_1 by all assignments of the rows: marginal likelihoods are multivariate t."""
    rows, prior = source.design(x), kappa * source.proportions
    logs, means = [], []
    for labels in product(range(2), repeat=len(y)):
        sizes = np.bincount(labels, minlength=2)
        value = float(gammaln(prior + sizes).sum())
        for k in range(2):
            own = np.array(labels) == k
            if own.any():
                scale = source.sigmas[k] ** 2 / 2 * (np.eye(own.sum()) + rows[own] @ rows[own].T)
                centre = rows[own] @ source.coefficients[k]
                value += float(multivariate_t.logpdf(y[own], centre, scale, df=4))
        logs.append(value)
        means.append((prior[0] + sizes[0]) / (kappa + len(y)))
    weights = np.exp(np.array(logs) - max(logs))
    return float(weights @ np.array(means) / weights.sum())


def test_proportions_of_components_that_overlap_are_those_of_all_assignments() -> None:
    source = check_mixture([0.3, 0.7], [[0.0, 1.0], [1.0, -1.0]], [0.7, 1.2])
    random = np.random.default_rng(3)
    x = random.normal(size=7)
    y = 1 + x + random.normal(size=7)
    drawn = sample(source, x, y, draws=4000, seed=4)
    share = next(one for one in drawn.summaries if one.name == "proportions/0")
    error = drawn.proportions[..., 0].std() / np.sqrt(share.effective_size)
    assert share.mean == pytest.approx(exact_share(source, x, y, 10.0), abs=4 * error)
    assert error < 0.005


def two_lines(scale: float = 1.0) -> tuple[RegressionMixture, Any, Any]:
    random = np.random.default_rng(5)
    source = check_mixture([0.5, 0.5], [[0.0, 2.0 * scale], [scale, -scale]], [scale, 0.5 * scale])
    x = random.normal(size=25)
    z = random.integers(2, size=25)
    y = source.means(x)[np.arange(25), z] + source.sigmas[z] * random.normal(size=25)
    return source, x, 1.2 * y


def test_the_units_of_y_do_not_matter_to_the_default_priors() -> None:
    here, there = (sample(*two_lines(scale), draws=200) for scale in (1.0, 1000.0))
    assert there.coefficients == pytest.approx(1000 * here.coefficients, rel=1e-6)
    assert there.sigmas == pytest.approx(1000 * here.sigmas, rel=1e-6)


def test_a_seed_repeats_the_draws() -> None:
    first, second = (sample(*two_lines(), draws=50, seed=8) for _ in range(2))
    assert (first.coefficients == second.coefficients).all()


def test_switched_labels_are_counted_and_put_right_on_request() -> None:
    source = check_mixture([0.5, 0.5], [[0.0, 0.1], [0.3, -0.1]], [1.0, 1.0])
    random = np.random.default_rng(9)
    x, y = random.normal(size=15), random.normal(size=15)
    plain, aligned = (sample(source, x, y, align=align, draws=500) for align in (False, True))
    assert plain.switched == aligned.switched
    assert 0.05 < plain.switched < 0.95
    apart = np.linalg.norm(plain.coefficients - source.coefficients, axis=-1).sum(axis=-1).mean()
    nearer = np.linalg.norm(aligned.coefficients - source.coefficients, axis=-1)
    assert nearer.sum(axis=-1).mean() < apart
    assert aligned.proportions.sum(axis=-1) == pytest.approx(np.ones((4, 500)))


def test_predictions_average_the_draws() -> None:
    source, x, y = two_lines()
    drawn = sample(source, x, y, draws=300)
    predicted = predict_posterior(drawn, x, y)
    means = np.einsum("nq,cdkq,cdk->n", source.design(x), drawn.coefficients, drawn.proportions)
    assert predicted.mean == pytest.approx(means / 1200)
    assert (np.diff(predicted.quantiles, axis=1) > 0).all()
    assert predicted.probabilities.sum(axis=1) == pytest.approx(np.ones(25))
    assert predicted.log_density is not None
    assert np.mean(y < predicted.quantiles[:, 2]) > 0.8


def test_effective_size_of_an_autoregression_is_known() -> None:
    random = np.random.default_rng(11)
    chains = np.empty((4, 4000))
    chains[:, 0] = random.normal(size=4)
    for i in range(1, 4000):
        chains[:, i] = 0.8 * chains[:, i - 1] + 0.6 * random.normal(size=4)
    size, rhat = effective_size(chains)
    assert size == pytest.approx(16000 * 0.2 / 1.8, rel=0.15)
    assert rhat < 1.01
    assert effective_size(chains + 3 * np.arange(4)[:, None])[1] > 1.5
    assert effective_size(np.ones((4, 100))) == (400.0, 1.0)


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"spread": -1.0}, "/options/spread"),
        ({"spread": [1.0, 1.0, 1.0]}, "/options/spread"),
        ({"shape": 0.0}, "/options/shape"),
        ({"scale": [1.0, 0.0]}, "/options/scale"),
        ({"kappa": 0.0}, "/options/kappa"),
    ],
)
def test_impossible_priors_are_refused(options: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        priors(two_lines()[0], **options)
    assert refused.value.faults[0].pointer == pointer


def test_more_draws_than_memory_are_refused() -> None:
    with pytest.raises(InvalidInput, match="draws × chains"):
        sample(*two_lines(), draws=10**6)
