"""A tree with what it was trained on: the source of adaptations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes, Floats, Mask
from app.core.errors import InvalidInput
from app.core.lazy import cached_property
from app.core.prevalence.adjustment.posteriors import adjust
from app.core.prevalence.calibration import Calibration
from app.core.trees.column import TrainingColumn
from app.core.trees.tree import Tree

LAPLACE = 1.0
"""Added to each class's count in a leaf: a pure leaf of five rows is no proof."""


@dataclass(frozen=True, eq=False)
class VersatileTree:
    """C ``classes``, d ``attributes`` by name, J nodes.

    ``categorical``: d, attributes whose numbers are codes, never adapted. ``columns``: d sorted
    training columns. ``counts``: J × C training rows that pass each node. ``calibration``: of the
    node posteriors, from rows that a tree grown likewise did not see.
    """

    classes: tuple[str, ...]
    attributes: tuple[str, ...]
    categorical: Mask
    tree: Tree
    columns: tuple[TrainingColumn, ...]
    counts: Floats
    calibration: Calibration | None = None

    @classmethod
    def of(
        cls,
        tree: Tree,
        features: NDArray[np.floating],
        labels: Codes,
        classes: Sequence[str],
        attributes: Sequence[str],
        categorical: Sequence[str] = (),
        where: str = "",
        keep_columns: bool = True,
    ) -> "VersatileTree":
        """From N × d training ``features`` (NaN where missing) and N class codes.

        Raises ``InvalidInput``, the pointer below ``where``, for unknown categorical attributes,
        infinite features, a wrong width and a class without rows. Without ``keep_columns`` the
        tree can score, but not be adapted.
        """
        names = tuple(attributes)
        _check(features, labels, len(classes), names, categorical, where)
        leaves = tree.leaves(features)
        at = leaves * len(classes) + labels
        counts = np.bincount(at, minlength=len(tree.feature) * len(classes)).astype(np.float64)
        columns = tuple(
            TrainingColumn.of(features[:, a].astype(np.float64), labels, len(classes))
            for a in range(len(names) if keep_columns else 0)
        )
        return cls(
            tuple(classes),
            names,
            np.isin(names, list(categorical)),
            tree,
            columns,
            tree.through(counts.reshape(-1, len(classes))),
        )

    @property
    def priors(self) -> Floats:
        """Class shares of the training rows, C."""
        shares: Floats = self.counts[0] / self.counts[0].sum()
        return shares

    @cached_property
    def decisions(self) -> Codes:
        """The class that most training rows of each node had, J; ties to the first."""
        decisions: Codes = self.counts.argmax(axis=1)
        return decisions

    @cached_property
    def raw_posteriors(self) -> Floats:
        """P(class | node) with a Laplace correction towards the priors, J × C."""
        smoothed = self.counts + LAPLACE * len(self.classes) * self.priors
        shares: Floats = smoothed / smoothed.sum(axis=1, keepdims=True)
        return shares

    @cached_property
    def posteriors(self) -> Floats:
        """Calibrated posteriors of the nodes, J × C, at the training priors."""
        raw = self.raw_posteriors
        return raw if self.calibration is None else self.calibration.apply(raw)

    def calibrated(self, calibration: Calibration) -> "VersatileTree":
        """The same tree with a calibration of its node posteriors."""
        return replace(self, calibration=calibration)

    def class_weights(self, target_priors: Floats) -> Floats:
        """P_dep(c) / P_tr(c), C; every class has training rows."""
        weights: Floats = target_priors / self.priors
        return weights

    def posteriors_under(self, target_priors: Floats) -> Floats:
        """The node posteriors, J × C, under other priors."""
        return adjust(self.posteriors, self.priors, target_priors)[0]


def _check(
    features: NDArray[np.floating],
    labels: Codes,
    classes: int,
    names: tuple[str, ...],
    categorical: Sequence[str],
    where: str,
) -> None:
    check_rows(features, len(names), where + "/features")
    if len(features) != len(labels):
        words = f"holds {len(labels)} labels for {len(features)} rows; send one for each row"
        raise InvalidInput.at(where + "/labels", words)
    empty = np.flatnonzero(np.bincount(labels, minlength=classes) == 0)
    if len(empty):
        words = f"holds no row of class number {empty[0]}; every class needs training rows"
        raise InvalidInput.at(where + "/labels", words)
    for i, name in enumerate(categorical):
        if name not in names:
            words = f"{name!r} is none of the feature names"
            raise InvalidInput.at(f"{where}/categorical/{i}", words)


def check_rows(features: NDArray[np.floating], width: int, where: str) -> None:
    """``InvalidInput`` unless this is an N × ``width`` table, N > 0, without infinities."""
    if features.ndim != 2 or features.shape[0] == 0:
        raise InvalidInput.at(where, "holds no rows; send at least one")
    if features.shape[1] != width:
        words = f"has {features.shape[1]} columns; send the {width} attributes of the model"
        raise InvalidInput.at(where, words)
    limit = float(np.finfo(np.float32).max)
    # These two ignore NaN, and need no second table.
    if (
        np.fmax.reduce(features, axis=None) <= limit
        and np.fmin.reduce(features, axis=None) >= -limit
    ):
        return
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero((np.abs(features) > limit).any(axis=1))
    if len(wrong):
        words = f"holds an infinity or a number beyond {limit:.3g}; send finite numbers or null"
        raise InvalidInput.at(f"{where}/{wrong[0]}", words, int(wrong[0]))
