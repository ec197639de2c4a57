"""The paper's experiments: their shifts, their figures, and one small run."""

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks.versatile import paper
from benchmarks.versatile.data import ABSOLUTE, CONTEXTS, Table
from benchmarks.versatile.experiment import SHIFTS, average_ranks, cross_validated
from benchmarks.versatile.shifts import SETTINGS, coefficients, cubic, linear, mixture
from tests.golden import GOLDEN


def test_the_reparametrisation() -> None:
    entry = GOLDEN["V07_linear_reparametrisation"]
    given, expected = entry["inputs"], entry["expected"]
    alpha, beta = coefficients(given["mu"], given["sigma"], given["phi"], given["gamma"])
    assert (alpha, beta) == (expected["alpha"], expected["beta"])
    column = np.array([given["mu"] - given["sigma"], given["mu"] + given["sigma"]])
    moved = linear(column, given["mu"], given["sigma"], given["phi"], given["gamma"])
    assert (moved.mean(), moved.std()) == (expected["mu_deploy"], expected["sigma_deploy"])
    assert len(SETTINGS) == 8


def test_the_cubic_shift_does_not_keep_the_deviation() -> None:
    expected = GOLDEN["V08_cubic_does_not_keep_sd"]["expected"]

    def moment(power: int) -> float:
        def integrand(x: float) -> float:
            return float(cubic(np.array([x]), 0.0, 1.0)[0] ** power * stats.norm.pdf(x))

        return float(integrate.quad(integrand, -12, 12)[0])

    assert moment(1) == pytest.approx(expected["mean_after"], abs=1e-9)
    assert np.sqrt(moment(2)) == pytest.approx(expected["sd_after"], abs=1e-9)


def test_the_published_ranks_follow_from_the_published_figures() -> None:
    expected = GOLDEN["V09_average_ranks"]["expected"]["average_ranks"]
    figures = [
        [row[method] for method in ("VM", "OM", "IOP", "KMM")]
        for contexts in paper.CONTEXTS.values()
        for row in contexts.values()
    ]
    assert len(figures) == 32
    np.testing.assert_allclose(average_ranks(figures), expected, atol=1e-9)


def test_contexts_are_split_at_their_own_mean_or_at_that_of_all(tmp_path: Path) -> None:
    lines = ["origin,displacement,horsepower,weight,acceleration,mpg,target"]
    lines += [f"{origin},1,2,3,4,{mpg},0" for origin, mpg in zip("112233", range(6), strict=True)]
    (tmp_path / "auto_mpg.csv").write_text("\n".join(lines))
    relative, absolute = (c.tables(tmp_path) for c in (CONTEXTS[2], ABSOLUTE[1]))
    assert relative is not None
    assert absolute is not None
    assert [table.labels.tolist() for table in relative.values()] == [[0, 1]] * 3
    assert [table.labels.tolist() for table in absolute.values()] == [[0, 0], [0, 1], [1, 1]]
    assert CONTEXTS[0].tables(tmp_path) is None


def test_a_mixture_has_thirds() -> None:
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(50, 6))
    moved = mixture(batch, batch, 1, 1, rng)
    assert sum(bool((moved[:, a] == batch[:, a]).all()) for a in range(6)) == 2


def test_maps_help_where_they_should() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 800)
    features = rng.normal(size=(800, 4)) + 2 * labels[:, None]
    found = cross_validated(Table(features, labels, tuple("wxyz"), ("a", "b")), seed=0)
    at = {name: i for i, name in enumerate(paper.STRATEGIES)}
    assert set(found.by_shift) == set(SHIFTS)
    assert found.mean("linear")[at["versatile"]] > found.mean("linear")[at["original"]] + 0.1
    assert found.mean("cubic")[at["percentile"]] > found.mean("cubic")[at["linear"]]
    assert abs(found.mean("unshifted")[at["versatile"]] - found.mean("unshifted")[1]) < 0.03
