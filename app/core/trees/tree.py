"""A decision tree as arrays, in scikit-learn's own conventions.

Node i sends a row to ``children_left[i]`` if x[feature[i]] <= threshold[i], else to
``children_right[i]``. A leaf has feature −2 and children −1; node 0 is the root. Rows are
compared in single precision with thresholds in double, as scikit-learn grows and walks its trees.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.core import deadline
from app.core.arrays import Codes, Floats, Mask
from app.core.errors import InvalidInput, pointer
from app.core.lazy import cached_property

Singles = NDArray[np.float32]

LEAF = -1
NO_FEATURE = -2
BLOCK = 1 << 14
"""Rows that are walked together: they and their nodes stay in the cache."""


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree of J nodes.

    ``feature``, ``children_left``, ``children_right``: J integers; ``threshold``: J numbers,
    −∞ sending every value to the right. ``missing_go_to_left``: J, whether a missing value goes to
    the left.
    """

    feature: Codes
    threshold: Floats
    children_left: Codes
    children_right: Codes
    missing_go_to_left: Mask

    @classmethod
    def of(
        cls,
        feature: NDArray[np.integer],
        threshold: Floats,
        children_left: NDArray[np.integer],
        children_right: NDArray[np.integer],
        width: int,
        missing_go_to_left: Mask | None = None,
        where: str = "",
    ) -> "Tree":
        """A tree over ``width`` attributes from arrays that somebody sent.

        Without ``missing_go_to_left`` a missing value goes to the right, as every comparison
        with it fails. Raises ``InvalidInput``, the pointer below ``where``, if the arrays are no
        tree: not of one length, a node that is nobody's child or two nodes', a child before its
        parent, a feature that is not there, a threshold that is NaN.
        An infinite threshold is scikit-learn's way to part the missing values from all others.
        """
        features = np.asarray(feature, dtype=np.intp)
        left = np.asarray(children_left, dtype=np.intp)
        right = np.asarray(children_right, dtype=np.intp)
        limits = np.asarray(threshold, dtype=np.float64)
        named = (("threshold", limits), ("children_left", left), ("children_right", right))
        for name, array in named:
            if array.shape != features.shape:
                words = f"has {array.size} entries, feature has {features.size}; send one per node"
                raise InvalidInput.at(where + pointer(name), words)
        missing = np.zeros(len(features), dtype=np.bool_)
        if missing_go_to_left is not None:
            missing = np.asarray(missing_go_to_left, dtype=np.bool_)
        tree = cls(features, limits, left, right, missing)
        tree._check(width, where)
        return tree

    def _check(self, width: int, where: str) -> None:
        nodes = len(self.feature)
        if nodes == 0:
            raise InvalidInput.at(where + pointer("feature"), "holds no nodes; send at least one")
        inner = self.inner
        self._check_children(where)
        wrong = inner[(self.feature[inner] < 0) | (self.feature[inner] >= width)]
        if len(wrong):
            words = f"is {self.feature[wrong[0]]}; send a column number from 0 to {width - 1}"
            raise InvalidInput.at(where + pointer("feature", int(wrong[0])), words)
        wrong = inner[np.isnan(self.threshold[inner])]
        if len(wrong):
            words = "is NaN; send a number"
            raise InvalidInput.at(where + pointer("threshold", int(wrong[0])), words)

    def _check_children(self, where: str) -> None:
        nodes = len(self.feature)
        parents = np.zeros(nodes, dtype=np.intp)
        for name in ("children_left", "children_right"):
            children = getattr(self, name)
            ends = (children == LEAF) & (self.children_left == self.children_right)
            wrong = np.flatnonzero(~ends & ((children <= np.arange(nodes)) | (children >= nodes)))
            if len(wrong):
                words = "is no later node; a child comes after its parent, a leaf has −1 twice"
                raise InvalidInput.at(where + pointer(name, int(wrong[0])), words)
            parents += np.bincount(children[children >= 0], minlength=nodes)
        lost = np.flatnonzero(parents[1:] != 1) + 1
        if len(lost):
            words = f"node {lost[0]} is the child of {parents[lost[0]]} nodes; send a tree"
            raise InvalidInput.at(where + pointer("children_left"), words)

    @cached_property
    def inner(self) -> Codes:
        """The nodes that decide, in order."""
        return np.flatnonzero(self.children_left != LEAF)

    @cached_property
    def depth(self) -> int:
        """Decisions on the longest way to a leaf."""
        level = np.zeros(len(self.feature), dtype=np.intp)
        for node in self.inner:  # A child comes after its parent.
            level[self.children_left[node]] = level[self.children_right[node]] = level[node] + 1
        return int(level.max())

    def with_thresholds(self, threshold: Floats) -> "Tree":
        """The same tree with J other thresholds."""
        other = replace(self, threshold=threshold)
        vars(other).update(inner=self.inner, depth=self.depth)
        return other

    def leaves(self, rows: NDArray[np.floating]) -> Codes:
        """The leaf that each of the N × d ``rows`` ends in."""
        reached = np.zeros(len(rows), dtype=np.intp)
        walk = _Walk(self)
        for start in range(0, len(rows), BLOCK):
            deadline.check()
            block = np.ascontiguousarray(rows[start : start + BLOCK], dtype=np.float32)
            reached[start : start + BLOCK] = walk.leaves(block)
        return reached

    def through(self, leaf_totals: Floats) -> Floats:
        """Sums over the leaves below each node, of J × C totals that are zero elsewhere."""
        totals = leaf_totals.copy()
        for node in self.inner[::-1]:
            totals[node] = totals[self.children_left[node]] + totals[self.children_right[node]]
        return totals

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The tree by name, as ``Tree(**arrays)`` takes it."""
        return {
            "feature": self.feature.astype(np.int32),
            "threshold": self.threshold,
            "children_left": self.children_left.astype(np.int32),
            "children_right": self.children_right.astype(np.int32),
            "missing_go_to_left": self.missing_go_to_left,
        }


class _Walk:
    """A tree laid out for walking: both children side by side, a leaf its own child."""

    def __init__(self, tree: Tree) -> None:
        nodes = np.arange(len(tree.feature))
        leaf = tree.children_left == LEAF
        right = np.where(leaf, nodes, tree.children_right)
        left = np.where(leaf, nodes, tree.children_left)
        self.children = np.stack([right, left], axis=1).ravel()
        self.feature = np.where(leaf, 0, tree.feature)
        self.threshold = np.where(leaf, np.inf, tree.threshold)
        self.missing_left, self.depth = tree.missing_go_to_left, tree.depth

    def leaves(self, block: Singles) -> Codes:
        """The leaves of contiguous n × d rows."""
        n, d = block.shape
        cells, first = block.ravel(), np.arange(n) * d
        gaps = bool(np.isnan(block).any())
        node = np.zeros(n, dtype=np.intp)
        for _ in range(self.depth):
            x = cells.take(first + self.feature.take(node))
            left = x <= self.threshold.take(node)
            if gaps:
                left |= np.isnan(x) & self.missing_left.take(node)
            node = self.children.take(2 * node + left)
        return node
