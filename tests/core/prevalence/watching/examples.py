"""Sources and batches of normal scores, for the tests of watching."""

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration.maps import Method
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive


def draw(
    rng: np.random.Generator, rows: int, shares: Floats, distance: float, source: Floats
) -> tuple[Codes, Floats]:
    """Labels, and posteriors that are right at ``source``; class means are a simplex apart."""
    classes = len(shares)
    labels = rng.choice(classes, rows, p=shares).astype(np.intp)
    x = rng.normal(size=(rows, classes)) + distance / np.sqrt(2) * np.eye(classes)[labels]
    logits = distance / np.sqrt(2) * x + np.log(source)
    g = np.exp(logits - logits.max(axis=1, keepdims=True))
    return labels, g / g.sum(axis=1, keepdims=True)


def registered(
    rng: np.random.Generator,
    rows: int,
    source: Floats,
    distance: float,
    calibration: Method = "bcts",
) -> tuple[SourceModel, Floats, Codes]:
    """A version, and the validation rows that it was made of."""
    labels, posteriors = draw(rng, rows, source, distance, source)
    names = tuple("abcdefgh"[: len(source)])
    given = Source(names, validation=ValidationSet(labels, posteriors), calibration=calibration)
    return derive(given, reporting=False), posteriors, labels
