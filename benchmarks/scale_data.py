"""Data sets for the measurements of scale: Parquet files, arrays, and rows made where they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.core.prevalence.arrays import Codes, Floats
from app.core.prevalence.blocks import AnyFloats
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
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


@dataclass(frozen=True, eq=False)
class Drawn:
    """``size`` rows that a worker draws when it reads them: nothing travels."""

    name: str
    seed: int
    size: int
    shares: tuple[float, ...]

    def pieces(self) -> Iterator[Piece]:
        """The same rows every time."""
        rng = np.random.default_rng(self.seed)
        for first in range(0, self.size, PIECE):
            rows = draw(rng, np.array(self.shares), min(PIECE, self.size - first))[1]
            yield Piece(rows.astype(np.float32))


@dataclass(frozen=True)
class Parquet:
    """Some row groups of a file, a column of float32 per class."""

    path: str
    groups: tuple[int, ...]

    @property
    def name(self) -> str:
        """The file and its row groups."""
        return f"{self.path}[{self.groups[0]}-{self.groups[-1]}]"

    def pieces(self) -> Iterator[Piece]:
        """Record batches as matrices, checked as rows that are sent are."""
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(PIECE, row_groups=list(self.groups)):
                rows = np.empty((batch.num_rows, batch.num_columns), np.float32)
                for k, column in enumerate(batch.columns):
                    rows[:, k] = column.to_numpy(zero_copy_only=False)
                off = np.abs(rows @ np.ones(rows.shape[1], np.float32) - 1.0)
                if not (off.max() <= 1e-3 and rows.min() >= 0.0):
                    raise ValueError(f"{self.name} holds rows that are no probabilities")
                yield Piece(rows)


def write(folder: Path, rows: int, files: int, shares: Floats) -> list[Parquet]:
    """Files of drawn rows in single precision, with pyarrow's own settings; a part per file."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"class-{k}" for k in range(len(shares))]
    parts = []
    for number, size in enumerate(np.full(files, rows // files)):
        path = folder / f"part-{number:03}.parquet"
        rng, count = np.random.default_rng(number), 0
        schema = pa.schema([(name, pa.float32()) for name in names])
        with pq.ParquetWriter(path, schema) as writer:
            for first in range(0, size, ROW_GROUP):
                drawn = draw(rng, shares, min(ROW_GROUP, size - first))[1].astype(np.float32)
                columns = [pa.array(np.ascontiguousarray(g)) for g in drawn.T]
                writer.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)
                count += 1
        parts.append(Parquet(str(path), tuple(range(count))))
    return parts
