"""The jobs of the worker and their results, to messages and back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from app.core.arrays import AnyArray, Codes, Floats
from app.core.json_types import JsonObject
from app.core.learners.columns import FeatureColumns
from app.core.learners.recipe import Recipe
from app.core.learners.trained import Training
from app.core.prevalence.estimators.cde import CdeResult
from app.training import serialization

GROWTH, TREE = "growth", "tree."


@dataclass(frozen=True)
class Learnt:
    """A training done: ``arrays`` of the final model, and out-of-fold posteriors, N × C.

    ``folds``: how many there were in the end; ``fits``: how many models were fitted, ``short`` of
    them ended before they had converged.
    """

    arrays: dict[str, AnyArray]
    posteriors: Floats
    folds: int
    fits: int
    short: int


@dataclass(frozen=True)
class Refitted:
    """cde by refitting: its result, and how many of ``fits`` did not converge."""

    result: CdeResult
    fits: int
    short: int


@dataclass(frozen=True)
class Job:
    """Train; or, with a ``batch`` (N × D), iterate cde on it in at most ``max_iterations``."""

    training: Training
    batch: Floats | None = None
    max_iterations: int = 0

    def message(self) -> bytes:
        """For the worker."""
        training = self.training
        content = {
            "recipe": asdict(training.recipe),
            "classes": training.classes,
            "max_iterations": self.max_iterations,
        }
        arrays: dict[str, AnyArray] = {
            "columns": training.columns.array(),
            "table": training.table,
            "labels": training.labels.astype(np.int64),
        }
        if self.batch is not None:
            arrays["batch"] = self.batch
        return serialization.encode(content, arrays)

    @classmethod
    def of(cls, content: JsonObject, arrays: dict[str, AnyArray]) -> "Job":
        """The job of ``message``."""
        training = Training(
            FeatureColumns.of_array(arrays["columns"]),
            arrays["table"],
            arrays["labels"].astype(np.intp),
            content["classes"],
            Recipe(**content["recipe"]),
        )
        return cls(training, arrays.get("batch"), content["max_iterations"])


def learnt_message(found: Learnt) -> bytes:
    """For the service."""
    content = {"folds": found.folds, "fits": found.fits, "short": found.short}
    return serialization.encode(content, {**found.arrays, "out_of_fold": found.posteriors})


def refitted_message(found: Refitted) -> bytes:
    """For the service."""
    content = {
        "prevalence": found.result.prevalence,
        "status": found.result.status,
        "iterations": found.result.iterations,
        "fits": found.fits,
        "short": found.short,
    }
    return serialization.encode(content, {"trace": found.result.trace})


def learnt(content: JsonObject, arrays: dict[str, AnyArray]) -> Learnt:
    """What ``learnt_message`` said."""
    posteriors = arrays.pop("out_of_fold")
    return Learnt(arrays, posteriors, content["folds"], content["fits"], content["short"])


def refitted(content: JsonObject, arrays: dict[str, AnyArray]) -> Refitted:
    """What ``refitted_message`` said."""
    result = CdeResult(
        content["prevalence"], content["status"], content["iterations"], arrays["trace"]
    )
    return Refitted(result, content["fits"], content["short"])


@dataclass(frozen=True)
class Growth:
    """Grow one tree on N × d ``rows`` (NaN where missing) and N class codes, and calibrate it.

    ``tree``: the arrays of one that was grown on these rows elsewhere.
    """

    rows: Floats
    labels: Codes
    classes: tuple[str, ...]
    attributes: tuple[str, ...]
    categorical: tuple[str, ...]
    max_depth: int | None
    min_samples_leaf: int
    seed: int
    tree: Mapping[str, AnyArray] | None = None

    def message(self) -> bytes:
        """For the worker."""
        content = {
            GROWTH: True,
            "classes": self.classes,
            "attributes": self.attributes,
            "categorical": self.categorical,
            "max_depth": self.max_depth,
            "min_samples_leaf": self.min_samples_leaf,
            "seed": self.seed,
        }
        tree = {f"{TREE}{name}": array for name, array in (self.tree or {}).items()}
        labels = self.labels.astype(np.int64)
        return serialization.encode(content, {"rows": self.rows, "labels": labels, **tree})

    @classmethod
    def of(cls, content: JsonObject, arrays: dict[str, AnyArray]) -> "Growth":
        """The growth of ``message``."""
        tree = {name.removeprefix(TREE): a for name, a in arrays.items() if name.startswith(TREE)}
        return cls(
            arrays["rows"],
            arrays["labels"].astype(np.intp),
            tuple(content["classes"]),
            tuple(content["attributes"]),
            tuple(content["categorical"]),
            content["max_depth"],
            content["min_samples_leaf"],
            content["seed"],
            tree or None,
        )
