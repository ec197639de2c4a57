"""Which methods there are, what a version can serve, and what ``auto`` takes."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from app.core.errors import InvalidInput, MethodUnavailable
from app.core.prevalence.matching.version import MOST_NUMBERS, MOST_ROWS
from app.core.prevalence.source import SourceModel
from app.estimation.request import Batch, FeatureBatch, OutputBatch, PosteriorBatch, SummedBatch

Method = Literal[
    "cc",
    "pcc",
    "acc",
    "acc-qp",
    "pacc-qp",
    "bayes",
    "cde",
    "em",
    "em-stop",
    "mle",
    "kmm-gaussian",
    "kmm-energy",
    "rffm",
]
METHODS: tuple[Method, ...] = get_args(Method)
ALIASES: dict[str, Method] = {"bbse": "acc", "bbse+": "acc-qp", "sld": "em", "emq": "em"}
SUMMED: frozenset[Method] = frozenset({"cc", "pcc", "acc", "acc-qp", "pacc-qp", "mle", "rffm"})
"""Methods that need few sums over the rows, and not the rows themselves."""
MATCHING: frozenset[Method] = frozenset({"kmm-gaussian", "kmm-energy", "rffm"})
LABEL_SCALE: frozenset[Method] = frozenset({"cc", "acc", "acc-qp", "pacc-qp", *MATCHING})
"""Methods that rest on labels: their source priors are label frequencies, also where posteriors
are used uncalibrated."""


@dataclass(frozen=True)
class Availability:
    """Whether a version serves a method, on posteriors or on predicted outputs.

    ``method``: by its canonical name.
    ``reason``: why not, in words; None where it does.
    """

    method: Method
    reason: str | None


def availability(model: SourceModel) -> list[Availability]:
    """What a version can do, for its page; ``reason`` is None for what is available."""
    no_outputs: Batch = OutputBatch(np.zeros(len(model.outputs)))
    no_rows: Batch = PosteriorBatch(np.zeros((0, len(model.classes))))
    no_features: Batch = FeatureBatch(np.zeros((0, 0)))
    answers = []
    for method in METHODS:
        kinds = (no_features, no_rows) if method in MATCHING else (no_rows, no_outputs)
        reasons = [refusal(method, model, batch) for batch in kinds]
        answers.append(Availability(method, None if None in reasons else reasons[0]))
    return answers


def choose(model: SourceModel, batch: Batch, name: str) -> tuple[Method, str]:
    """The method that answers, and why; ``MethodUnavailable`` where the model cannot."""
    if name == "auto":
        return _automatic(model, batch)
    method = canonical(name)
    refused = refusal(method, model, batch)
    if refused is not None:
        raise MethodUnavailable(method, refused)
    return method, "asked for"


def canonical(name: str) -> Method:
    """A method by its name or an alias of the literature; ``InvalidInput`` for any other."""
    for method in METHODS:
        if name == method:
            return method
    if name in ALIASES:
        return ALIASES[name]
    known = ", ".join(["auto", *METHODS, *ALIASES])
    raise InvalidInput.at("/method", f"is not a method; choose one of {known}")


def _automatic(model: SourceModel, batch: Batch) -> tuple[Method, str]:
    if batch.labels is not None and refusal("mle", model, batch) is None:
        return "mle", f"{np.count_nonzero(batch.labels >= 0)} rows came with labels"
    if isinstance(batch, FeatureBatch):
        return "rffm", "features that no classifier has scored"
    if isinstance(batch, OutputBatch):
        if model.confusion is not None:
            return "mle", "predicted outputs with a confusion matrix"
        return "cc", "predicted outputs without a confusion matrix: counting is all there is"
    card = model.scorecard
    if card is None or refusal(canonical(card.chosen), model, batch) is not None:
        return default(model)
    return canonical(card.chosen), card.reason


def default(model: SourceModel) -> tuple[Method, str]:
    """The method for posteriors where nothing was tried, and why."""
    if model.calibration.method != "none":
        return "mle", "posteriors with a calibrated validation set"
    if model.confusion is not None and model.decides_outputs:
        return (
            "acc-qp",
            "posteriors without calibration: the confusion matrix does not need it",
        )
    return "mle", "posteriors and source priors only"


def refusal(method: Method, model: SourceModel, batch: Batch) -> str | None:
    """Why this model cannot serve this method on this batch, or None."""
    if isinstance(batch, SummedBatch) and method not in SUMMED:
        return "it goes through the rows too often for a data set; choose mle"
    if method in MATCHING:
        return _mismatch(method, model, batch)
    if isinstance(batch, FeatureBatch):
        return "it needs posteriors or predictions; features are matched: choose rffm"
    outputs = isinstance(batch, OutputBatch)
    inverts = method in ("acc", "acc-qp")
    maximises = method in ("bayes", "em", "mle")
    if method in ("cde", "em-stop") and outputs:
        return "it needs posteriors; send posteriors"
    if method == "cde" and len(model.classes) != 2:
        return f"it decides between two classes, the model has {len(model.classes)}"
    if method == "em-stop" and model.validation_size is None:
        return "it watches decisions on labelled rows; register a validation set"
    if method in ("pcc", "pacc-qp") and outputs:
        return "it averages posteriors; send posteriors"
    if method == "pacc-qp" and model.soft is None:
        return "it needs mean posteriors by class; register a validation set"
    if method == "cc" and outputs and not set(model.classes) <= set(model.outputs):
        return "not every class has a predicted output of its name, so it cannot be counted"
    if inverts and not outputs and not model.decides_outputs:
        return (
            "the confusion matrix has outputs other than the classes, which decisions on "
            "posteriors do not produce; send predictions or predicted_counts"
        )
    if model.confusion is None and (inverts or (maximises and outputs)):
        return "the version has no confusion matrix; register one, or a validation set"
    return None


def _mismatch(method: Method, model: SourceModel, batch: Batch) -> str | None:
    """The same for the methods that match features."""
    matching = model.matching
    if matching is None:
        return "it matches features with those of labelled rows; register validation.features"
    if matching.options.feature_map == "posteriors":
        if not isinstance(batch, PosteriorBatch):
            return "this version matches posteriors; send posteriors"
    elif not isinstance(batch, FeatureBatch):
        return "it matches features; send features"
    if method != "rffm" and not matching.exact:
        return (
            f"it needs the labelled rows themselves, and more than {MOST_ROWS} rows or "
            f"{MOST_NUMBERS} numbers are not kept; choose rffm"
        )
    return None
