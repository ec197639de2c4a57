"""What is to be fitted: the learners, and the parameters that each of them takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.core.errors import Faults, pointer
from app.core.json_types import JsonValue

Learner = Literal[
    "logistic-regression", "random-forest", "naive-bayes", "linear-svm", "gradient-boosting"
]
Missing = Literal["refuse", "impute"]
STANDARDISED: frozenset[Learner] = frozenset({"logistic-regression", "linear-svm"})
LINEAR: frozenset[Learner] = STANDARDISED
"""Learners whose posteriors are a softmax of linear scores."""


@dataclass(frozen=True)
class Number:
    """A number from ``low`` to ``high``, both allowed."""

    default: float | None
    low: float
    high: float
    whole: bool = False
    optional: bool = False

    def fault(self, value: JsonValue) -> str | None:
        """Why ``value`` will not do."""
        if value is None and self.optional:
            return None
        kinds = {int} if self.whole else {int, float}
        if type(value) in kinds and self.low <= value <= self.high:
            return None
        kind = "a whole number" if self.whole else "a number"
        return f"must be {kind} from {self.low:g} to {self.high:g}" + " or null" * self.optional


@dataclass(frozen=True)
class OneOf:
    """A parameter that must be one of ``values``; ``default`` is among them."""

    default: str | None
    values: tuple[str | None, ...]

    def fault(self, value: object) -> str | None:
        """Why ``value`` will not do."""
        if any(type(value) is type(known) and value == known for known in self.values):
            return None
        return f"must be one of {', '.join(str(v) if v else 'null' for v in self.values)}"


PARAMETERS: Mapping[Learner, Mapping[str, Number | OneOf]] = {
    "logistic-regression": {
        "C": Number(1.0, 1e-6, 1e6),
        "max_iter": Number(1000, 1, 100_000, whole=True),
    },
    "linear-svm": {
        "C": Number(1.0, 1e-6, 1e6),
        "loss": OneOf("squared_hinge", ("squared_hinge", "hinge")),
        "max_iter": Number(10_000, 1, 1_000_000, whole=True),
    },
    "naive-bayes": {
        "distribution": OneOf("gaussian", ("gaussian", "multinomial")),
        "alpha": Number(1.0, 1e-9, 1e6),
        "var_smoothing": Number(1e-9, 1e-12, 1.0),
    },
    "random-forest": {
        "n_estimators": Number(100, 1, 1000, whole=True),
        "max_depth": Number(None, 1, 100, whole=True, optional=True),
        "min_samples_leaf": Number(1, 1, 1_000_000, whole=True),
        "max_features": OneOf("sqrt", ("sqrt", "log2", None)),
    },
    "gradient-boosting": {
        "n_estimators": Number(100, 1, 1000, whole=True),
        "learning_rate": Number(0.1, 1e-4, 1.0),
        "max_depth": Number(None, 1, 100, whole=True, optional=True),
        "max_leaf_nodes": Number(31, 2, 1024, whole=True),
        "min_samples_leaf": Number(20, 1, 1_000_000, whole=True),
        "l2_regularization": Number(0.0, 0.0, 1e6),
    },
}


@dataclass(frozen=True)
class Recipe:
    """A learner with all its parameters, and how it is validated."""

    learner: Learner
    parameters: dict[str, object]
    folds: int = 5
    missing: Missing = "refuse"
    seed: int = 0

    @property
    def standardises(self) -> bool:
        """Whether the learner needs numeric columns on one scale."""
        return self.learner in STANDARDISED

    @property
    def counts(self) -> bool:
        """Whether numeric columns must hold counts."""
        return self.parameters.get("distribution") == "multinomial"


def complete_parameters(
    learner: Learner, parameters: Mapping[str, object], at: str
) -> dict[str, object]:
    """``parameters`` and defaults of the others; ``InvalidInput`` for what is not known."""
    known, faults = PARAMETERS[learner], Faults()
    for name, value in parameters.items():
        if name not in known:
            message = f"is not a parameter of {learner}, which takes {', '.join(known)}"
            faults.add(at + pointer(name), message)
            continue
        fault = known[name].fault(value)
        if fault is not None:
            faults.add(at + pointer(name), fault)
    faults.raise_if_any()
    return {name: parameters.get(name, rule.default) for name, rule in known.items()}
