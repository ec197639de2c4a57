"""``versatile-tree``: a decision tree whose thresholds follow the batch."""

import hashlib
import json as stdlib_json
from dataclasses import fields
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.errors import Faults, InvalidInput, pointer
from app.core.json_types import JsonObject, JsonValue
from app.core.trees.adaptation import (
    Predictions,
    adaptation,
    predictions,
    predictions_at,
)
from app.core.trees.ks import KolmogorovSmirnov
from app.core.trees.model import VersatileTree
from app.core.trees.options import Correction, SecondTest, Strategy, TreeOptions
from app.core.trees.output_shift import OutputShift
from app.core.trees.results import AttributeShift, ThresholdChange
from app.core.trees.serialization import of_arrays
from app.core.trees.tree import Tree
from app.formats import json, table
from app.formats.table import MOST_COLUMNS
from app.http.body import Payload, Sent
from app.intake import parse
from app.kinds import Adapted, Load
from app.schemas.presenters import by_class
from app.schemas.requests import ByName, In, Labels, Metadata, Names, Numbers, Table, at_most
from app.training.messages import Growth
from app.training.process import Trainer, TrainingRefused, TrainingTooLong
from models_store import arrays
from models_store.adaptations import AdaptationRecord, Arrays, SourceRecord
from models_store.cache import Cache
from models_store.sources import Prepared

MOST_NODES = 200_000
MOST_NUMBERS = 50_000_000
KEPT_BYTES = 256 * 1024 * 1024
"""Loaded trees with their training columns."""


class TreeTrainingIn(In):
    """Labelled rows that the tree is, or was, trained on; null is a missing value."""

    features: Table
    labels: Labels
    feature_names: Annotated[Names | None, Field(min_length=1), at_most(MOST_COLUMNS)] = None
    categorical: Annotated[Names, at_most(MOST_COLUMNS)] = Field(default_factory=list)
    max_depth: Annotated[int | None, Field(ge=1, le=100)] = None
    min_samples_leaf: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0


class TreeArraysIn(In):
    """A tree in scikit-learn's own arrays: ``estimator.tree_.feature`` and so on."""

    feature: Numbers
    threshold: Numbers
    children_left: Numbers
    children_right: Numbers
    missing_go_to_left: Numbers | None = None


class TreeSourceIn(In):
    """Rows to grow a tree on; or a tree that exists, and the rows that it was grown on."""

    training: TreeTrainingIn
    tree: TreeArraysIn | None = None
    metadata: Metadata = Field(default_factory=dict)


class TreeAdaptationIn(In):
    """A batch of features to adapt to; null is a missing value."""

    features: Table
    columns: Labels | None = None
    strategy: Strategy = "versatile"
    significance: Annotated[float, Field(gt=0, lt=1)] = 0.05
    correction: Correction = "none"
    second_test: SecondTest = "plain"
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    target_priors: ByName | Literal["estimate"] | None = None
    deployment_labels: Labels | None = None
    include: Annotated[list[Literal["predictions", "posteriors"]], at_most(2)] = Field(
        default_factory=list
    )


class TreePredictionsIn(In):
    """Further rows of features."""

    features: Table
    columns: Labels | None = None
    include: Annotated[list[Literal["posteriors"]], at_most(1)] = Field(default_factory=list)


class VersatileTrees:
    """The kind; it keeps the trees that were used last, by what is in them."""

    classes = True
    adapts = TreeAdaptationIn
    predicts = TreePredictionsIn
    registers = TreeSourceIn

    def __init__(self) -> None:
        self._kept = Cache[str, VersatileTree](KEPT_BYTES)

    def prepare(
        self, source: object, classes: tuple[str, ...], at: str, trainer: Trainer
    ) -> tuple[Prepared, dict[str, object]]:
        """Grow or check the tree, sort its training columns, calibrate its leaves."""
        given = parse.part(TreeSourceIn, source, at)
        growth = _growth(given, classes, at)
        try:
            with trainer.turn():
                kept = trainer.grow(growth)
                deadline.renew()
        except (TrainingRefused, TrainingTooLong) as error:
            raise InvalidInput.at(f"{at}/training", str(error)) from None
        model = of_arrays(classes, growth.attributes, kept)
        content = {
            "attributes": growth.attributes,
            "categorical": growth.categorical,
            "priors": by_class(classes, model.priors),
            "tree": {
                "nodes": len(model.tree.feature),
                "depth": model.tree.depth,
                "leaves": len(model.tree.feature) - len(model.tree.inner),
            },
            "rows": len(growth.rows),
            "grown": growth.tree is None,
            "max_depth": growth.max_depth,
            "min_samples_leaf": growth.min_samples_leaf,
            "seed": growth.seed,
        }
        encoded = {name: arrays.encode(array) for name, array in kept.items()}
        return Prepared(_digest(classes, content, encoded), content, encoded), given.metadata

    def version(self, record: SourceRecord) -> JsonObject:
        """What was registered."""
        content = record.content
        return {
            "classes": list(record.classes),
            **{key: content[key] for key in ("priors", "attributes", "categorical", "tree")},
            "training": {key: content[key] for key in TRAINING},
        }

    def adapt(self, record: SourceRecord, load: Load, payload: Payload) -> Adapted:
        """Its thresholds adapted to a batch."""
        model = self._model(record, load)
        sent = payload.batch()
        given, rows = _batch(TreeAdaptationIn, sent, model)
        options = TreeOptions(
            strategy=given.strategy,
            significance=given.significance,
            correction=given.correction,
            second_test=given.second_test,
            seed=given.seed,
        )
        priors, labels = _output_shift(given, model.classes, sent)
        found = adaptation(model, rows, options, priors, labels)
        content = {
            "size": found.size,
            **vars(options),
            "summary": {
                "moved": [one.in_words for one in found.moved],
                "changed_predictions": found.changed,
            },
            "attributes": [_attribute(one) for one in found.attributes],
            "thresholds": [_threshold(one) for one in found.thresholds],
            "output_shift": _shown(model.classes, found.output_shift),
            "prevalence": by_class(model.classes, found.prevalence),
        }
        kept = {"adapted": np.array([one.adapted for one in found.thresholds])}
        if found.target_priors is not None:
            kept["target_priors"] = found.target_priors
        included: JsonObject = {}
        if given.include:
            said = predictions_at(model, found.leaves, found.target_priors)
            included = _scored(said, model.classes, given.include)
        return Adapted(content, kept, found.warnings, included)

    def predict(
        self, record: AdaptationRecord, kept: Arrays, load: Load, payload: Payload
    ) -> JsonObject:
        """Classes of further rows by the adapted thresholds."""
        model = self._model(record.source, load)
        given, rows = _batch(TreePredictionsIn, payload.batch(), model)
        thresholds = [
            ThresholdChange(int(node), "", 0.0, float(adapted))
            for node, adapted in zip(model.tree.inner, kept["adapted"], strict=True)
        ]
        said = predictions(model, thresholds, kept.get("target_priors"), rows)
        return {
            "adaptation": record.id,
            "size": len(rows),
            "columns": list(model.classes),
            **_scored(said, model.classes, ["predictions", *given.include]),
        }

    def _model(self, record: SourceRecord, load: Load) -> VersatileTree:
        known = self._kept.get(record.digest)
        if known is not None:
            return known
        kept = load()
        model = of_arrays(record.classes, tuple(record.content["attributes"]), kept)
        self._kept.add(record.digest, model, sum(array.nbytes for array in kept.values()))
        return model


TRAINING = ("rows", "grown", "max_depth", "min_samples_leaf", "seed")


def _batch(shape: JsonValue, sent: Sent, model: VersatileTree) -> tuple[JsonValue, Floats]:
    """The envelope, and N × d rows in the model's order."""
    names = model.attributes
    if sent.frame is None:
        given = parse.envelope(shape, sent.content, sent.text)
        return given, _few(table.batch(given.features, given.columns, names, {}, True), "/features")
    given = parse.envelope(shape, {**sent.content, "features": []}, sent.text)
    if given.columns is not None:
        raise InvalidInput.at("/columns", "the rows are in the body; leave it out")
    faults = Faults()
    for name in names:
        if sent.frame.find(name) is None:
            faults.add(pointer(name), "is missing")
    faults.raise_if_any()
    return given, _few(table.framed(sent.frame, names, {}, True), "")


def _few(rows: Floats, at: str) -> Floats:
    if rows.size > MOST_NUMBERS:
        message = f"holds {rows.size} numbers, at most {MOST_NUMBERS} are allowed"
        raise InvalidInput.at(at, message)
    return rows


def _growth(given: TreeSourceIn, classes: tuple[str, ...], at: str) -> Growth:
    """What is to be grown, checked."""
    asked, where = given.training, f"{at}/training"
    names = table.feature_names(asked.features, asked.feature_names, where)
    rows = table.table(asked.features, names, {}, False, True, f"{where}/features")
    rows = _few(rows, f"{where}/features")
    labels = json.codes(asked.labels, classes, f"{where}/labels")
    if len(labels) != len(rows):
        message = f"has {len(labels)} labels for {len(rows)} rows of features"
        raise InvalidInput.at(f"{where}/labels", message)
    empty = np.flatnonzero(np.bincount(labels, minlength=len(classes)) == 0)
    if len(empty):
        message = f"has no row of {classes[empty[0]][:60]}; every class needs training rows"
        raise InvalidInput.at(f"{where}/labels", message)
    faults = Faults()
    for position, name in enumerate(table.unique(asked.categorical, f"{where}/categorical")):
        if name not in names:
            faults.add(f"{where}/categorical/{position}", f"{json.shown(name)} is not a column")
    faults.raise_if_any()
    tree = None if given.tree is None else _sent(given.tree, len(names), f"{at}/tree")
    return Growth(
        rows,
        labels,
        classes,
        names,
        tuple(asked.categorical),
        asked.max_depth,
        asked.min_samples_leaf,
        asked.seed,
        None if tree is None else {one.name: getattr(tree, one.name) for one in fields(Tree)},
    )


def _output_shift(
    given: TreeAdaptationIn, classes: tuple[str, ...], sent: Sent
) -> tuple[Floats | Literal["estimate"] | None, Codes | None]:
    """The target priors that are stated or asked for, or labels of some rows."""
    if given.deployment_labels is None:
        if given.target_priors is None or given.target_priors == "estimate":
            return given.target_priors, None
        priors, _ = parse.stated_priors(given.target_priors, classes, "/target_priors")
        return priors, None
    if given.target_priors is not None:
        message = "give the class shares too; send target_priors or labels, one of the two"
        raise InvalidInput.at("/deployment_labels", message)
    if sent.frame is None:
        return None, json.codes(given.deployment_labels, classes, "/deployment_labels")
    column = str(given.deployment_labels)
    labels = sent.frame.labels(column, classes, "/deployment_labels", partial=True)
    if not (labels >= 0).any():
        raise InvalidInput.at("/deployment_labels", f"column {column[:80]!r} holds no label")
    return None, labels[labels >= 0]


def _shown(classes: tuple[str, ...], found: OutputShift | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "target_priors": by_class(classes, found.target_priors),
        "status": found.status,
        "start": found.start,
        "rounds": found.rounds,
        "cycle": found.cycle,
    }


def _scored(said: Predictions, classes: tuple[str, ...], include: list[str]) -> dict[str, object]:
    shown: JsonObject = {}
    if "predictions" in include:
        shown["predictions"] = [classes[k] for k in said.decisions.tolist()]
    if "posteriors" in include:
        shown["posteriors"] = said.posteriors
    return shown


def _sent(given: TreeArraysIn, width: int, at: str) -> Tree:
    """A tree as somebody's scikit-learn grew it."""
    parts: dict[str, Codes] = {}
    for name in ("feature", "children_left", "children_right"):
        numbers = _numbers(getattr(given, name), f"{at}/{name}")
        if (numbers != np.round(numbers)).any():
            raise InvalidInput.at(f"{at}/{name}", "must hold whole numbers")
        parts[name] = numbers.astype(np.intp)
    missing = None
    if given.missing_go_to_left is not None:
        missing = _numbers(given.missing_go_to_left, f"{at}/missing_go_to_left") != 0
        if len(missing) != len(parts["feature"]):
            raise InvalidInput.at(f"{at}/missing_go_to_left", "must have one entry per node")
    threshold = _numbers(given.threshold, f"{at}/threshold")
    return Tree.of(
        parts["feature"],
        threshold,
        parts["children_left"],
        parts["children_right"],
        width,
        missing,
        at,
    )


def _numbers(values: object, at: str) -> Floats:
    if not isinstance(values, list) or not 0 < len(values) <= MOST_NODES:
        raise InvalidInput.at(at, f"must be a list of 1 to {MOST_NODES} numbers, one per node")
    faults = Faults()
    for position, value in enumerate(values):
        if type(value) not in (int, float) or not abs(value) < 1e300:
            faults.add(f"{at}/{position}", f"is {json.shown(value)}, must be a number")
    faults.raise_if_any()
    return np.array(values, dtype=np.float64)


def _digest(classes: tuple[str, ...], content: dict[str, object], encoded: dict[str, bytes]) -> str:
    state = hashlib.sha256(stdlib_json.dumps([classes, content], sort_keys=True).encode())
    for name, array in sorted(encoded.items()):
        state.update(f"{name} {len(array)}".encode())
        state.update(array)
    return state.hexdigest()


def _test(found: KolmogorovSmirnov | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "ks_statistic": found.statistic,
        "p_value": found.p_value,
        "p_value_method": found.method,
    }


def _attribute(one: AttributeShift) -> dict[str, object]:
    first = _test(one.first)
    return {
        "attribute": one.attribute,
        **(first or {"ks_statistic": None, "p_value": None, "p_value_method": None}),
        "adjusted_p_value": one.adjusted_p_value,
        "shifted": one.shifted,
        "kind": one.kind,
        "alpha": one.alpha,
        "beta": one.beta,
        "second_test": _test(one.second),
        "attained_share": one.attained_share,
        "in_words": one.in_words,
    }


def _threshold(one: ThresholdChange) -> dict[str, object]:
    """A threshold of minus infinity, which sends every value to the right, is null."""
    return {
        "node": one.node,
        "attribute": one.attribute,
        "source": one.source if np.isfinite(one.source) else None,
        "adapted": one.adapted if np.isfinite(one.adapted) else None,
        "share": one.share,
        "attained_share": one.attained_share,
    }
