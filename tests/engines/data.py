"""Partitions of arrays, and source models to estimate with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from app.core.arrays import AnyFloats, Codes, Floats
from app.core.prevalence.matching.version import MatchingOptions, ReferenceRows
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.engines.partitions import Partition, Piece


@dataclass(frozen=True, eq=False)
class ArrayPartition:
    """Rows in memory, in pieces of ``length``; ``groups``: codes into ``names``."""

    name: str
    rows: AnyFloats
    groups: Codes | None = None
    names: tuple[tuple[str, ...], ...] = ()
    length: int = 50_000

    def pieces(self) -> Iterator[Piece]:
        for first in range(0, len(self.rows), self.length):
            part = slice(first, first + self.length)
            if self.groups is None:
                yield Piece(self.rows[part])
                continue
            codes, own = np.unique(self.groups[part], return_inverse=True)
            yield Piece(self.rows[part], own, tuple(self.names[code] for code in codes))


def draw(rng: np.random.Generator, shares: Floats, size: int) -> tuple[Codes, Floats]:
    """Labels and posteriors of a classifier of C classes that was trained on even shares."""
    classes = len(shares)
    labels = rng.choice(classes, size, p=shares)
    logits = rng.standard_normal((size, classes))
    logits[np.arange(size), labels] += 1.5
    logits *= 1.5
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return labels, logits


def model(classes: int, rows: int = 2000, calibration: str = "bcts", seed: int = 0) -> SourceModel:
    """A version with a validation set."""
    rng = np.random.default_rng(seed)
    labels, posteriors = draw(rng, np.full(classes, 1 / classes), rows)
    names = tuple(f"class-{k}" for k in range(classes))
    validation = ValidationSet(labels, posteriors)
    return derive(Source(names, validation=validation, calibration=calibration))  # type: ignore[arg-type]


def matching(classes: int) -> SourceModel:
    """A version that matches posteriors by random features."""
    labels, rows = draw(np.random.default_rng(0), np.full(classes, 1 / classes), 1000)
    names = tuple(f"class-{k}" for k in range(classes))
    return derive(
        Source(
            names,
            validation=ValidationSet(labels, rows),
            reference=ReferenceRows(labels, rows, names),
            matching=MatchingOptions(feature_map="posteriors", dimension=100),
        )
    )


def cut(
    rows: AnyFloats,
    count: int,
    groups: Codes | None = None,
    names: Sequence[tuple[str, ...]] = (),
    seed: int = 0,
) -> list[Partition]:
    """``count`` uneven partitions of the rows, some of them empty."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, len(rows) + 1, count - 1))
    ends[count // 3] = ends[count // 3 - 1]
    ends[-1] = len(rows)
    bounds = [0, *np.sort(ends).tolist(), len(rows)]
    return [
        ArrayPartition(
            f"part-{i}", rows[a:b], None if groups is None else groups[a:b], tuple(names)
        )
        for i, (a, b) in enumerate(pairwise(bounds))
    ]
