"""Exact kernels against the reference rows, in blocks: no n × N matrix is ever held."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core import deadline
from app.core.arrays import Codes, Floats

Name = Literal["gaussian", "energy"]
BLOCK = 1 << 20
"""Kernel values that are held at once."""


@dataclass(frozen=True)
class Kernel:
    """exp(−‖x − y‖²/2σ²), or ‖x‖ + ‖y‖ − ‖x − y‖, which has no bandwidth σ."""

    name: Name
    bandwidth: float = 1.0

    def of(self, x: Floats, y: Floats) -> Floats:
        """All pairs, N × n; for few rows."""
        squares = squared_distances(x, y)
        if self.name == "gaussian":
            squares *= -0.5 / self.bandwidth**2
            return np.exp(squares, out=squares)
        np.sqrt(squares, out=squares)
        norms: Floats = _norms(x)[:, None] + _norms(y)
        return np.subtract(norms, squares, out=norms)


def squared_distances(x: Floats, y: Floats) -> Floats:
    """‖x_i − y_j‖², N × n, never negative."""
    squares: Floats = np.dot(-2.0 * x, y.T)
    squares += (x**2).sum(axis=1)[:, None]
    squares += (y**2).sum(axis=1)
    return np.maximum(squares, 0.0, out=squares)


def _norms(x: Floats) -> Floats:
    norms: Floats = np.sqrt((x**2).sum(axis=1))
    return norms


def class_kernels(
    x: Floats, reference: Floats, labels: Codes, classes: int, kernel: Kernel
) -> tuple[Floats, Floats]:
    """Mean kernel of each row with each class, N × C, and of each reference row with x, n.

    One pass over the N · n pairs.
    """
    belongs = np.zeros((len(reference), classes))
    belongs[np.arange(len(labels)), labels] = 1.0 / np.bincount(labels, minlength=classes)[labels]
    rows, columns = np.empty((len(x), classes)), np.zeros(len(reference))
    for start, block in _blocks(x, len(reference)):
        values = kernel.of(block, reference)
        rows[start : start + len(block)] = np.dot(values, belongs)
        columns += values.sum(axis=0)
    return rows, columns / len(x)


def mean_kernel(x: Floats, kernel: Kernel, most: int = 4096) -> float:
    """Mean of k(x_i, x_j) over all pairs of rows; of evenly spaced ones beyond ``most``."""
    some = x[:: -(-len(x) // most)]
    total = sum(float(kernel.of(block, some).sum()) for _, block in _blocks(some, len(some)))
    return total / len(some) ** 2


def gram(rows: Floats, labels: Codes) -> Floats:
    """C × C means of ``rows`` (n × C kernel means of the reference itself) by class."""
    classes = rows.shape[1]
    totals = np.array([np.bincount(labels, column, classes) for column in rows.T])
    means = totals.T / np.bincount(labels, minlength=classes)[:, None]
    return np.asarray((means + means.T) / 2)


def _blocks(x: Floats, width: int) -> Iterator[tuple[int, Floats]]:
    step = max(BLOCK // width, 1)
    for start in range(0, len(x), step):
        deadline.check()
        yield start, x[start : start + step]
