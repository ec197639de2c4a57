"""Data sets for the measurements of scale: Parquet files, and arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.core.arrays import AnyFloats, Codes, Floats
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.datasets.dataset import Asked, resolve
from app.datasets.partition import FilePartition
from app.datasets.roots import Roots
from app.engines import Piece

ROW_GROUP = 1 << 20
PIECE = 1 << 17


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


def model(classes: int, calibrated: bool = True) -> SourceModel:
    """A version with 5000 validation rows; or with its priors alone."""
    names = tuple(f"class-{k}" for k in range(classes))
    even = np.full(classes, 1 / classes)
    if not calibrated:
        return derive(Source(names, priors=even))
    labels, posteriors = draw(np.random.default_rng(0), even, 5000)
    return derive(Source(names, validation=ValidationSet(labels, posteriors)))


@dataclass(frozen=True, eq=False)
class Array:
    """Rows in memory; ``groups``: codes into ``names``."""

    name: str
    rows: AnyFloats
    groups: Codes | None = None
    names: tuple[tuple[str, ...], ...] = ()

    def pieces(self) -> Iterator[Piece]:
        """A hundred thousand rows at a time."""
        for first in range(0, len(self.rows), PIECE):
            part = slice(first, first + PIECE)
            if self.groups is None:
                yield Piece(self.rows[part])
            else:
                yield Piece(self.rows[part], self.groups[part], self.names)


def write(folder: Path, rows: int, files: int, shares: Floats) -> list[Path]:
    """Files of drawn rows in single precision, with pyarrow's own settings."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"class-{k}" for k in range(len(shares))]
    paths = []
    for number, size in enumerate(np.full(files, rows // files)):
        path = folder / f"part-{number:03}.parquet"
        rng = np.random.default_rng(number)
        schema = pa.schema([(name, pa.float32()) for name in names])
        with pq.ParquetWriter(path, schema) as writer:
            for first in range(0, size, ROW_GROUP):
                drawn = draw(rng, shares, min(ROW_GROUP, size - first))[1].astype(np.float32)
                columns = [pa.array(np.ascontiguousarray(g)) for g in drawn.T]
                writer.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)
        paths.append(path)
    return paths


def partitions(folder: Path, classes: Sequence[str]) -> tuple[FilePartition, ...]:
    """The files of a folder, as the service reads them."""
    return resolve(Roots.of([str(folder)]), Asked("*.parquet"), classes).partitions
