"""The Kolmogorov-Smirnov test against counting, SciPy and simulation."""

import warnings
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from app.core.trees.ks import asymptotic_p_value, effective_size, exact_p_value, ks_test
from tests.golden import GOLDEN


def test_a_small_example_has_the_known_p_values() -> None:
    entry = GOLDEN["V06_ks_small"]
    a, b = np.array(entry["inputs"]["a"]), np.array(entry["inputs"]["b"])
    found = ks_test(np.sort(a), np.sort(b))
    expected = entry["expected"]
    assert found.method == "exact"
    assert found.statistic == pytest.approx(expected["statistic"], abs=1e-12)
    assert found.p_value == pytest.approx(expected["p_exact"], abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 4), (4, 3), (5, 5), (2, 7)])
def test_the_exact_p_value_counts_all_orders(n: int, m: int) -> None:
    distances = []
    for places in combinations(range(n + m), n):
        step = np.full(n + m, -n)
        step[list(places)] = m
        distances.append(int(np.abs(np.cumsum(step)).max()))
    for numerator in range(n * m + 1):
        share = sum(d >= numerator for d in distances) / comb(n + m, n)
        assert exact_p_value(numerator, n, m) == pytest.approx(share, abs=1e-12)


def test_tiny_exact_p_values_keep_their_digits() -> None:
    """Only two of all paths separate the samples completely."""
    assert exact_p_value(100 * 100, 100, 100) == pytest.approx(2 / comb(200, 100), rel=1e-9)
    assert exact_p_value(7, 1, 7) == pytest.approx(2 / 8)


values = st.lists(st.integers(-5, 5), min_size=1, max_size=12)


@given(values, values, st.integers(1, 3))
def test_the_statistic_is_that_of_scipy_also_with_ties(
    a: list[int], b: list[int], copies: int
) -> None:
    found = ks_test(np.sort(np.array(a, float)), np.sort(np.array(b, float)))
    with warnings.catch_warnings(record=True) as gave_up:
        warnings.simplefilter("always")
        peer = stats.ks_2samp(a, b, method="exact")
    assert found.statistic == pytest.approx(peer.statistic, abs=1e-12)
    if not gave_up:
        assert found.p_value == pytest.approx(peer.pvalue, rel=1e-9)
    swapped = ks_test(np.sort(np.array(b, float)), np.sort(np.array(a, float)))
    assert swapped.statistic == pytest.approx(found.statistic, abs=1e-12)
    assert swapped.p_value == pytest.approx(found.p_value, rel=1e-9)
    again = ks_test(np.sort(np.array(a * copies, float)), np.sort(np.array(b, float)))
    assert again.statistic == pytest.approx(found.statistic, abs=1e-12)


@given(values, values, st.data())
def test_an_integer_weight_is_that_many_copies(
    a: list[int], b: list[int], data: st.DataObject
) -> None:
    a = sorted(a)
    copies = [data.draw(st.integers(1, 3)) for _ in a]
    repeated = np.repeat(np.array(a, float), copies)
    weights = np.array(copies, float)
    weighted = ks_test(np.array(a, float), np.sort(np.array(b, float)), weights)
    plain = ks_test(repeated, np.sort(np.array(b, float)))
    assert weighted.statistic == pytest.approx(plain.statistic, abs=1e-12)
    longer = ks_test(np.array(a, float), np.repeat(np.sort(np.array(b, float)), 9), weights)
    assert longer.statistic == pytest.approx(plain.statistic, abs=1e-12)


def test_large_samples_use_the_limit() -> None:
    rng = np.random.default_rng(0)
    a, b = np.sort(rng.normal(size=900)), np.sort(rng.normal(0.1, size=1100))
    found = ks_test(a, b)
    assert found.method == "asymptotic"
    assert found.p_value == pytest.approx(stats.ks_2samp(a, b, method="exact").pvalue, rel=0.1)
    even = ks_test(a, b, np.full(900, 3.0))
    assert (even.statistic, even.p_value) == (found.statistic, found.p_value)


def test_weights_cost_effective_size() -> None:
    weights = np.array([1.6] * 500 + [0.4] * 500)
    assert effective_size(weights) == pytest.approx(1000**2 / (500 * (1.6**2 + 0.4**2)))
    assert asymptotic_p_value(0.0, 10, 10) == 1.0


def test_an_empty_sample_shows_nothing() -> None:
    found = ks_test(np.empty(0), np.array([1.0]))
    assert (found.statistic, found.p_value) == (0.0, 1.0)
