"""Algorithm 1, on examples with known answers and on shifts that were made."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from app.core.trees.adapt import AdaptedTree, adapt, adjusted_p_values
from app.core.trees.batch import SortedBatch
from app.core.trees.model import VersatileTree
from app.core.trees.options import Strategy, TreeOptions
from app.core.trees.tree import Tree
from tests.golden import GOLDEN


def stump(threshold: float, train: NDArray[Any], **options: Any) -> VersatileTree:
    """One node on one attribute."""
    tree = Tree.of(
        np.array([0, -2, -2]),
        np.array([threshold, -2, -2]),
        np.array([1, -1, -1]),
        np.array([2, -1, -1]),
        1,
    )
    labels = np.arange(len(train)) % 2
    return VersatileTree.of(tree, train[:, None], labels, ["no", "yes"], ["x"], **options)


def adapted(model: VersatileTree, values: NDArray[Any], **options: Any) -> AdaptedTree:
    rows = np.asarray(values, float).reshape(len(values), -1)
    return adapt(model, SortedBatch(rows), TreeOptions(**options))


@pytest.mark.parametrize(
    ("entry", "kind"), [("V05_versatile_none", "none"), ("V05_versatile_percentile", "monotone")]
)
def test_the_regime_is_the_known_one(entry: str, kind: str) -> None:
    inputs, expected = GOLDEN[entry]["inputs"], GOLDEN[entry]["expected"]
    model = stump(inputs["th_train"], np.array(inputs["train"]))
    found = adapted(model, inputs["deploy"], significance=inputs["level"])
    shift, threshold = found.attributes[0], found.thresholds[0]
    assert shift.kind == kind
    assert threshold.adapted == pytest.approx(expected["th_deploy"], abs=1e-6)
    assert shift.first is not None
    assert shift.first.method == "exact"
    assert shift.first.statistic == pytest.approx(expected["ks1"]["statistic"], abs=1e-12)
    assert shift.first.p_value == pytest.approx(expected["ks1"]["p_exact"], rel=1e-6)
    fitted = adapted(model, inputs["deploy"], strategy="linear").attributes[0]
    assert fitted.alpha == pytest.approx(expected["alpha"], abs=1e-9)
    assert fitted.beta == pytest.approx(expected["beta"], abs=1e-9)
    if kind == "monotone":
        assert shift.second is not None
        assert shift.second.statistic == pytest.approx(expected["ks2"]["statistic"], abs=1e-12)
        assert shift.second.p_value == pytest.approx(expected["ks2"]["p_exact"], rel=1e-6)
    percentile = adapted(model, inputs["deploy"], strategy="percentile").thresholds[0]
    assert percentile.adapted == pytest.approx(expected["percentile_threshold"], abs=1e-6)


def test_a_linear_shift_is_undone_in_the_units_of_the_attribute() -> None:
    celsius = stats.norm(12, 5).ppf(np.linspace(0.01, 0.99, 60))
    fahrenheit = 1.8 * stats.norm(12, 5).ppf(np.linspace(0.02, 0.98, 40)) + 32
    found = adapted(stump(15.0, celsius), fahrenheit)
    shift = found.attributes[0]
    assert shift.kind == "linear"
    expected_alpha = fahrenheit.std() / celsius.std()
    assert shift.alpha == pytest.approx(expected_alpha)
    assert found.thresholds[0].adapted == pytest.approx(
        fahrenheit.mean() + expected_alpha * (15.0 - celsius.mean())
    )
    assert found.tree.threshold[0] == found.thresholds[0].adapted
    exact = adapted(stump(15.0, celsius), 1.8 * celsius + 32).attributes[0]
    assert exact.in_words == "x: ×1.8 + 32"


def test_integers_are_snapped_to_their_lattice_before_the_second_test() -> None:
    inputs = GOLDEN["V10_integer_attribute_trap"]["inputs"]
    expected = GOLDEN["V10_integer_attribute_trap"]["expected"]
    values = np.arange(1, 11)
    train = np.repeat(values, inputs["train_counts"]).astype(float)
    deploy = np.repeat(2 * values + 3, inputs["deploy_counts"]).astype(float)
    shift = adapted(stump(3.5, train), deploy).attributes[0]
    assert shift.alpha == pytest.approx(expected["alpha"], abs=1e-9)
    assert shift.beta == pytest.approx(expected["beta"], abs=1e-9)
    assert shift.alpha is not None
    assert shift.beta is not None
    assert shift.second is not None
    assert shift.second.statistic == pytest.approx(
        expected["ks_after_snapping_to_the_training_grid"]["statistic"], abs=1e-9
    )
    assert shift.kind == "linear"
    corrected = (deploy - shift.beta) / shift.alpha
    raw = stats.ks_2samp(train, corrected, method="asymp")
    assert raw.statistic == pytest.approx(expected["ks_after_linear_correction"]["statistic"])


EXPECTED: dict[Strategy, tuple[str, str, str]] = {
    "versatile": ("none", "linear", "monotone"),
    "original": ("none", "none", "none"),
    "linear": ("linear", "linear", "linear"),
    "percentile": ("monotone", "monotone", "monotone"),
    "ks-linear": ("none", "linear", "linear"),
    "ks-percentile": ("none", "monotone", "monotone"),
}


@pytest.mark.parametrize("strategy", EXPECTED)
def test_six_strategies_on_three_shifts(strategy: Strategy) -> None:
    rng = np.random.default_rng(5)
    train, fresh = rng.normal(3, 1, 2000), rng.normal(3, 1, 1500)
    model = stump(3.5, train)
    kinds = tuple(
        adapted(model, shifted, strategy=strategy).attributes[0].kind
        for shifted in (fresh, 2 * fresh - 1, np.exp(fresh))
    )
    assert kinds == EXPECTED[strategy]


def test_percentiles_recover_a_monotone_map() -> None:
    rng = np.random.default_rng(6)
    model = stump(3.5, rng.normal(3, 1, 5000))
    threshold = adapted(model, np.exp(rng.normal(3, 1, 5000))).thresholds[0]
    assert np.log(threshold.adapted) == pytest.approx(3.5, abs=0.05)
    assert threshold.share == pytest.approx(threshold.attained_share, abs=1 / 5000)


def test_few_values_keep_the_threshold_and_say_so() -> None:
    rng = np.random.default_rng(7)
    model = stump(3.5, rng.normal(3, 1, 500))
    found = adapted(model, np.exp(rng.normal(3, 1, 29)), strategy="percentile")
    assert found.attributes[0].kind == "none"
    assert found.thresholds[0].adapted == 3.5
    assert [w.code for w in found.warnings] == ["few-values"]
    assert adapted(model, np.exp(rng.normal(3, 1, 30)), strategy="percentile").warnings == ()


def test_a_decreasing_map_is_reported() -> None:
    rng = np.random.default_rng(8)
    model = stump(1.0, rng.exponential(size=1000))
    found = adapted(model, 5 - 2 * rng.exponential(size=1000))
    assert [w.code for w in found.warnings] == ["decreasing-map"]


def test_missing_values_are_left_out_of_everything_but_the_rows() -> None:
    rng = np.random.default_rng(9)
    train, fresh = rng.normal(size=300), 2 * rng.normal(size=200) + 1
    gaps = np.concatenate([fresh, np.full(50, np.nan)])
    one, other = adapted(stump(0.3, train), fresh), adapted(stump(0.3, train), gaps)
    assert one.attributes == other.attributes
    nothing = adapted(stump(0.3, train), np.full(40, np.nan), strategy="percentile")
    assert (nothing.attributes[0].kind, nothing.warnings[0].code) == ("none", "no-values")


@pytest.mark.parametrize("strategy", EXPECTED)
def test_constant_columns_are_no_trouble(strategy: Strategy) -> None:
    varied = np.random.default_rng(10).normal(size=100)
    for train, batch in [(varied, np.full(50, 0.1)), (np.full(100, 0.1), varied)]:
        found = adapted(stump(0.3, train), batch, strategy=strategy)
        assert found.attributes[0].alpha is None
        assert found.attributes[0].kind != "linear"


def test_categorical_attributes_stay() -> None:
    rng = np.random.default_rng(11)
    model = stump(0.5, rng.normal(size=100), categorical=["x"])
    for strategy in EXPECTED:
        found = adapted(model, 100 + rng.normal(size=100), strategy=strategy)
        assert (found.attributes[0].kind, found.attributes[0].first) == ("none", None)
        assert found.thresholds[0].adapted == 0.5


def test_holm() -> None:
    assert adjusted_p_values([0.01, 0.04, 0.03], "holm") == pytest.approx([0.03, 0.06, 0.06])
    assert adjusted_p_values([0.9, 0.8], "holm") == [1.0, 1.0]
    assert adjusted_p_values([0.01, 0.2], "none") == [0.01, 0.2]
    assert adjusted_p_values([], "holm") == []


@pytest.mark.parametrize("law", ["normal", "exponential"])
def test_the_bootstrap_makes_the_second_test_one_of_five_percent(law: str) -> None:
    """100 exact linear shifts; the plain test rejects 0 % and 12 to 14 % of them."""
    rng = np.random.default_rng(12)
    draw = getattr(rng, law)
    rejected = 0
    for i in range(100):
        model, batch = stump(0.5, draw(size=80)), 2 * draw(size=80) + 50
        shift = adapted(model, batch, second_test="bootstrap", seed=i).attributes[0]
        assert shift.second is not None
        assert shift.second.method == "bootstrap"
        rejected += shift.second.p_value < 0.05
    assert 1 <= rejected <= 11
