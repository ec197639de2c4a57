from typing import Any, get_args

import pytest

from app.core.errors import InvalidInput
from app.core.learners.recipe import PARAMETERS, Learner, complete_parameters


def test_every_learner_has_valid_defaults() -> None:
    assert set(PARAMETERS) == set(get_args(Learner))
    for learner, rules in PARAMETERS.items():
        defaults = {name: rule.default for name, rule in rules.items()}
        assert complete_parameters(learner, {}, "") == defaults
        assert complete_parameters(learner, defaults, "") == defaults


@pytest.mark.parametrize(
    ("learner", "given"),
    [
        ("random-forest", {"n_estimators": 1001}),
        ("random-forest", {"n_estimators": 10**400}),
        ("random-forest", {"n_estimators": 10.0}),
        ("random-forest", {"n_estimators": True}),
        ("random-forest", {"n_estimators": None}),
        ("random-forest", {"max_depth": 0}),
        ("random-forest", {"max_features": 1}),
        ("random-forest", {"max_features": ["sqrt"]}),
        ("logistic-regression", {"C": 0}),
        ("logistic-regression", {"C": "1"}),
        ("logistic-regression", {"C": [1]}),
        ("linear-svm", {"loss": None}),
        ("naive-bayes", {"distribution": {}}),
        ("gradient-boosting", {"learning_rate": float("inf")}),
    ],
)
def test_values_out_of_bounds_are_named(learner: Learner, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        complete_parameters(learner, given, "/p")
    assert caught.value.faults[0].pointer == f"/p/{next(iter(given))}"


def test_unknown_names_are_told_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="which takes C, max_iter"):
        complete_parameters("logistic-regression", {"gamma": 1}, "")
