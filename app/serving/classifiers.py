"""Versions trained in the service: training them, scoring features, refitting them."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.core import deadline
from app.core.arrays import Floats, probability_rows
from app.core.errors import InvalidInput, MethodUnavailable
from app.core.learners import columns as features
from app.core.learners.columns import Level
from app.core.learners.recipe import Recipe
from app.core.learners.trained import Trained, Training, size
from app.core.names import composed
from app.core.prevalence.estimators.cde import CdeResult
from app.core.prevalence.source import Source, ValidationSet
from app.core.warnings import Warning, WarningCode
from app.estimation import Batch, PosteriorBatch
from app.estimation.request import Refit
from app.formats import table
from app.formats.frame import Frame
from app.intake import parse
from app.intake import training as given_training
from app.schemas.requests import OptionsIn, SourceIn
from app.training.messages import Learnt
from app.training.process import Trainer, TrainingRefused, TrainingTooLong
from models_store import sources, trainings
from models_store.records import VersionRecord
from models_store.sources import Prepared
from models_store.store import Store

MOST_REFITS = 50
FILLED = "missing values that were filled, with medians and most frequent levels:"


class Classifiers:
    """Trains, and keeps the classifiers that score; the least recently used goes first."""

    def __init__(self, store: Store, trainer: Trainer, max_bytes: int) -> None:
        self._store = store
        self.trainer = trainer
        self._max_bytes = max_bytes
        self._kept: OrderedDict[int, tuple[Trained, int]] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        """End what is being fitted."""
        self.trainer.close()

    def prepare(
        self, given: SourceIn, names: tuple[str, ...], at: str, model: str | None = None
    ) -> Prepared:
        """A source ready to be written; trained first where it asks for that.

        Nothing is fitted or tried where ``model`` has a version of the same content already.
        """
        asked = given_training.training(given, names, at)
        if asked is None:
            source = parse.source(given, names, at)
            digest = sources.digest(source)
            if self._known(model, digest):
                return Prepared.known(digest)
            return Prepared.of(source, parse.derived(source, at))
        digest = trainings.digest(asked, names, given.calibration or "bcts")
        if self._known(model, digest):
            return Prepared.known(digest)
        try:
            with self.trainer.turn():
                if self._known(model, digest):
                    return Prepared.known(digest)
                learnt = self.trainer.learn(asked)
                deadline.renew()
        except (TrainingRefused, TrainingTooLong) as error:
            raise InvalidInput.at(f"{at}/training", str(error)) from None
        posteriors = probability_rows(learnt.posteriors, f"{at}/training").values
        source = _source(given, names, asked, posteriors, _doubts(asked, learnt))
        shown = given_training.description(asked, learnt.folds)
        prepared = Prepared.of(source, parse.derived(source, at))
        return prepared.trained(digest, shown, learnt.arrays, asked.table)

    def of(self, record: VersionRecord) -> "Scoring":
        """What a version does with features."""
        return Scoring(self, record)

    def trained(self, record: VersionRecord) -> Trained:
        """The classifier of a version; ``MethodUnavailable`` if it was not trained here."""
        if record.training is None:
            reason = (
                "the version was not trained in the service; train one, register "
                "validation.features to match, or send posteriors"
            )
            raise MethodUnavailable("scoring features", reason)
        with self._lock:
            if record.id in self._kept:
                self._kept.move_to_end(record.id)
                return self._kept[record.id][0]
        with self._store.read() as unit:
            arrays = unit.versions.trained(record)
        loaded = Trained.of_arrays(arrays)
        self._keep(record.id, loaded, size(arrays))
        return loaded

    def refit(
        self, record: VersionRecord, batch: PosteriorBatch, steps: int
    ) -> tuple[CdeResult, tuple[Warning, ...]]:
        """Cde on a batch by refitting in at most ``steps`` fits, and what to say of them."""
        assert batch.features is not None
        training = self._training(record)
        try:
            with self.trainer.turn():
                found = self.trainer.refit(training, batch.features, steps)
                deadline.renew()
        except (TrainingRefused, TrainingTooLong) as error:
            raise InvalidInput.at("/options/refit", str(error)) from None
        return found.result, _unconverged(found.short, found.fits)

    def _training(self, record: VersionRecord) -> Training:
        assert record.training is not None
        columns = self.trained(record).columns
        with self._store.read() as unit:
            values, labels = unit.versions.training_rows(record)
        known = record.training
        recipe = Recipe(
            known["learner"], known["parameters"], known["folds"], known["missing"], known["seed"]
        )
        return Training(columns, values, labels, len(record.source.classes), recipe)

    def _known(self, model: str | None, digest: str) -> bool:
        if model is None:
            return False
        with self._store.read() as unit:
            return unit.versions.has(model, digest)

    def _keep(self, version_id: int, loaded: Trained, bytes_: int) -> None:
        with self._lock:
            self._kept[version_id] = (loaded, bytes_)
            while len(self._kept) > 1 and sum(b for _, b in self._kept.values()) > self._max_bytes:
                self._kept.popitem(last=False)


def _places(levels: Sequence[Level]) -> dict[Level, int]:
    """Positions, of each level as it was kept and in normal form C."""
    kept: dict[Level, int] = {level: code for code, level in enumerate(levels)}
    texts = {level: code for level, code in kept.items() if isinstance(level, str)}
    return {**{composed(text): code for text, code in texts.items()}, **kept}


@dataclass(frozen=True)
class Scoring:
    """A version with features at hand."""

    learners: Classifiers
    record: VersionRecord

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features; empty for a version that was not trained here."""
        if self.record.training is None:
            return ()
        return tuple(self.record.training["feature_names"])

    def batch(self, values: object, columns: object) -> PosteriorBatch:
        """Features as JSON or NPY brings them, rows in the order of ``columns``, scored."""
        return self._scored(lambda *known: table.batch(values, columns, *known))

    def framed(self, frame: Frame) -> PosteriorBatch:
        """The features among the columns of a table, scored."""
        return self._scored(lambda *known: table.framed(frame, *known))

    def _scored(
        self, read: Callable[[Sequence[str], table.Levels, bool], Floats]
    ) -> PosteriorBatch:
        trained = self.learners.trained(self.record)
        assert self.record.training is not None
        known = trained.columns
        levels: table.Levels = {j: _places(names) for j, names in known.levels.items()}
        rows = read(known.names, levels, self.record.training["missing"] == "impute")
        scored = probability_rows(trained.posteriors(rows), "/features")
        return PosteriorBatch(scored.values, notes=_notes(rows, known), features=rows)

    def refit(self, method: str, options: OptionsIn, batch: Batch | None) -> Refit | None:
        """Cde by refitting, where ``options`` ask for it; or why that cannot be."""
        if not options.refit:
            return None
        if method != "cde":
            raise InvalidInput.at("/options/refit", "is of the method cde")
        if self.record.training is None:
            reason = "the version was not trained in the service, so there is nothing to refit"
            raise MethodUnavailable("cde by refitting", reason)
        if not isinstance(batch, PosteriorBatch) or batch.features is None:
            raise InvalidInput.at("/options/refit", "needs the rows themselves; send features")
        steps = min(options.max_iterations, MOST_REFITS)
        return partial(self.learners.refit, self.record, batch, steps)


def _source(
    given: SourceIn,
    names: tuple[str, ...],
    asked: Training,
    posteriors: Floats,
    notes: tuple[Warning, ...],
) -> Source:
    """Out-of-fold posteriors as a validation set, labels as class counts."""
    return Source(
        classes=names,
        class_counts=np.bincount(asked.labels, minlength=len(names)).astype(np.float64),
        validation=ValidationSet(asked.labels, posteriors),
        calibration=given.calibration or "bcts",
        notes=notes,
    )


def _doubts(asked: Training, learnt: Learnt) -> tuple[Warning, ...]:
    said = []
    if learnt.folds < asked.recipe.folds:
        message = (
            f"{learnt.folds} folds instead of {asked.recipe.folds}: every fold needs a row of "
            "every class; send more rows of the rarest"
        )
        said.append(Warning(WarningCode.FEWER_FOLDS, message))
    said.extend(_unconverged(learnt.short, learnt.fits))
    gaps = features.missing(asked.table)
    if gaps:
        said.append(Warning(WarningCode.IMPUTED_TRAINING, f"{FILLED} {gaps}"))
    return tuple(said)


def _unconverged(short: int, fits: int) -> tuple[Warning, ...]:
    if short == 0:
        return ()
    message = (
        f"{short} of {fits} fits ended before they had converged; train with a higher max_iter, "
        "or a lower C"
    )
    return (Warning(WarningCode.NOT_CONVERGED, message),)


def _notes(rows: Any, known: features.FeatureColumns) -> tuple[Warning, ...]:
    said = []
    gaps = features.missing(rows)
    if gaps:
        message = f"{FILLED} {gaps}"
        said.append(Warning(WarningCode.IMPUTED, message))
    unknown = features.unknown(rows, known)
    if unknown:
        message = f"values whose level training never saw, and that were ignored: {unknown}"
        said.append(Warning(WarningCode.UNKNOWN_LEVELS, message))
    return tuple(said)
