"""Ensembles of binary trees as flat arrays, walked for all rows and trees at once."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from app.core.arrays import Codes, Floats

AT_ONCE = 1 << 19
"""Rows × trees that are walked together."""


@dataclass(frozen=True)
class Trees:
    """T trees over one list of nodes.

    A row at node i goes to ``children[i, 1]`` if x[feature[i]] <= threshold[i], else to
    ``children[i, 0]``; a leaf goes to itself. ``roots``: T nodes; ``depth``: steps after which
    every row is at a leaf.
    """

    children: Codes
    feature: Codes
    threshold: Floats
    roots: Codes
    depth: int

    def leaves(self, encoded: NDArray[np.floating]) -> Iterator[tuple[slice, Codes]]:
        """Blocks of rows, and the T × rows leaves that they end in."""
        step = max(AT_ONCE // len(self.roots), 1)
        for start in range(0, len(encoded), step):
            rows = slice(start, min(start + step, len(encoded)))
            yield rows, self._walk(np.ascontiguousarray(encoded[rows]))

    def _walk(self, block: NDArray[np.floating]) -> Codes:
        """T × n leaves; those that have arrived are walked no further."""
        children, cells = self.children.ravel(), block.ravel()
        n, P = block.shape
        first = np.tile(np.arange(n) * P, len(self.roots))
        reached = np.repeat(self.roots, n)
        moving, node = np.arange(len(reached)), reached
        for _ in range(self.depth):
            goes_left = cells.take(first.take(moving) + self.feature.take(node)) <= (
                self.threshold.take(node)
            )
            node = children.take(2 * node + goes_left)
            reached[moving] = node
            inside = children.take(2 * node) != node
            moving, node = moving[inside], node[inside]
        return reached.reshape(len(self.roots), n)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The trees by name."""
        return {
            "children": self.children.astype(np.int32),
            "feature": self.feature.astype(np.int32),
            "threshold": self.threshold,
            "roots": self.roots.astype(np.int32),
            "depth": np.array([self.depth]),
        }


@dataclass(frozen=True)
class Forest:
    """The mean of the trees' leaf frequencies; ``values``: nodes × C.

    Features are compared in single precision with thresholds in double, as the trees were grown.
    """

    trees: Trees
    values: Floats

    def posteriors(self, encoded: Floats) -> Floats:
        """N × C for an encoded N × P table."""
        posteriors = np.empty((len(encoded), self.values.shape[1]))
        for rows, leaves in self.trees.leaves(encoded.astype(np.float32)):
            total = np.zeros((leaves.shape[1], posteriors.shape[1]))
            for tree in leaves:
                total += self.values[tree]
            posteriors[rows] = total / len(leaves)
        return posteriors

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its parameters by name."""
        return {**self.trees.arrays(), "values": self.values}


@dataclass(frozen=True)
class Boosting:
    """softmax(baseline + Σ_trees leaf value); ``values``: one per node, ``baseline``: C.

    ``outputs``: the class whose score each tree adds to. Two classes: the first stays at zero.
    """

    trees: Trees
    values: Floats
    outputs: Codes
    baseline: Floats

    def posteriors(self, encoded: Floats) -> Floats:
        """N × C for an encoded N × P table."""
        scores = np.tile(self.baseline, (len(encoded), 1))
        for rows, leaves in self.trees.leaves(encoded):
            for tree, output in zip(leaves, self.outputs, strict=True):
                scores[rows, output] += self.values[tree]
        return np.asarray(softmax(scores, axis=1), dtype=np.float64)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its parameters by name."""
        return {
            **self.trees.arrays(),
            "values": self.values,
            "outputs": self.outputs.astype(np.int32),
            "baseline": self.baseline,
        }
