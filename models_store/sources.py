"""A version's content as columns and back: scalars and vectors as JSON, matrices as arrays."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.source import Source, SourceModel
from app.core.warnings import Warning, WarningCode
from models_store import arrays, matchings, scorecards, trainings
from models_store.calibrations import decode, encode, report_from_json, report_to_json


@dataclass(frozen=True)
class Prepared:
    """A source ready to be written: digest, JSON part, encoded matrices."""

    digest: str
    derived: dict[str, Any]
    matrices: dict[str, bytes]

    @classmethod
    def of(cls, source: Source, model: SourceModel) -> "Prepared":
        """Encode before the transaction, which then holds its locks for less time."""
        encoded = {name: arrays.encode(a) for name, a in matrices(source, model).items()}
        return cls(digest(source), to_json(model), encoded)

    @classmethod
    def known(cls, digest: str) -> "Prepared":
        """Content that a version of this digest holds already."""
        return cls(digest, {}, {})

    def trained(
        self,
        digest: str,
        description: dict[str, Any],
        classifier: Mapping[str, NDArray[Any]],
        rows: NDArray[Any],
    ) -> "Prepared":
        """The same with the classifier that was trained on ``rows`` to get it."""
        more = trainings.named(classifier, rows)
        encoded = {name: arrays.encode(array) for name, array in more.items()}
        derived = {**self.derived, "training": description}
        return Prepared(digest, derived, {**self.matrices, **encoded})


VECTORS = ("training_priors", "priors", "output_priors", "label_counts", "mean_gap")


def digest(source: Source) -> str:
    """SHA-256 of what was registered, in the classes' order; the same content, the same digest."""
    state = hashlib.sha256()
    named: dict[str, Any] = {"classes": source.classes, "calibration": source.calibration}
    if source.confusion is not None:
        named["outputs"] = source.outputs
    given = _registered(source)
    if source.reference is not None:
        named["matching"] = {**asdict(source.matching), "names": source.reference.names}
        given["reference_labels"] = source.reference.labels.astype(np.int32)
        given["reference"] = source.reference.rows
    state.update(json.dumps(named, sort_keys=True).encode())
    for name, array in given.items():
        array = np.ascontiguousarray(array)
        state.update(f"{name} {array.dtype.str} {array.shape}".encode())
        state.update(array.data)
    return state.hexdigest()


def _registered(source: Source) -> dict[str, NDArray[Any]]:
    given: dict[str, NDArray[Any]] = {}
    if source.class_counts is not None:
        given["class_counts"] = source.class_counts
    if source.priors is not None:
        given["priors"] = source.priors
    if source.confusion is not None:
        given["confusion"] = source.confusion.counts
    if source.validation is not None:
        given["labels"] = source.validation.labels.astype(np.int32)
        given["posteriors"] = source.validation.posteriors
    return given


def matrices(source: Source, model: SourceModel) -> dict[str, NDArray[Any]]:
    """What is kept as binary arrays: what was registered, and the confusion matrix in use."""
    kept = _registered(source)
    if model.confusion is not None:
        kept["confusion"] = model.confusion.counts
    if model.nuisance is not None:
        kept["nuisance"] = model.nuisance
    if model.soft is not None:
        kept["soft"] = model.soft
    if model.second_moment is not None:
        kept["second_moment"] = model.second_moment
    return kept | matchings.arrays(model.matching, model.bins)


def to_json(model: SourceModel) -> dict[str, Any]:
    """Everything of a source model but its matrices."""
    content: dict[str, Any] = {
        "classes": list(model.classes),
        "outputs": list(model.outputs),
        "validation_size": model.validation_size,
        "calibration": encode(model.calibration),
        "report": None if model.report is None else report_to_json(model.report),
        "scorecard": None if model.scorecard is None else scorecards.encode(model.scorecard),
        "matching": matchings.to_json(model.matching),
        "warnings": [[w.code, w.message] for w in model.warnings],
    }
    for name in VECTORS:
        vector = getattr(model, name)
        content[name] = None if vector is None else vector.tolist()
    return content


def from_json(content: dict[str, Any], kept: dict[str, NDArray[Any]]) -> SourceModel:
    """The source model of ``to_json``, with the matrices that were kept beside it."""
    confusion = kept.get("confusion")
    vectors: dict[str, Any] = {
        name: None if content[name] is None else np.array(content[name]) for name in VECTORS
    }
    report, card = content.get("report"), content.get("scorecard")
    return SourceModel(
        classes=tuple(content["classes"]),
        outputs=tuple(content["outputs"]),
        confusion=None if confusion is None else ConfusionMatrix(confusion),
        calibration=decode(content["calibration"], len(content["classes"])),
        validation_size=content["validation_size"],
        nuisance=kept.get("nuisance"),
        second_moment=kept.get("second_moment"),
        soft=kept.get("soft"),
        report=None if report is None else report_from_json(report),
        matching=matchings.from_json(content.get("matching"), kept),
        bins=matchings.bins(kept),
        scorecard=None if card is None else scorecards.decode(card),
        warnings=tuple(
            Warning(WarningCode(code), message) for code, message in content["warnings"]
        ),
        **vectors,
    )
