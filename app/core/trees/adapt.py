"""Thresholds that follow a batch, attribute by attribute (paper, algorithm 1).

First test: does the attribute's batch differ from its training column? If so, fit a linear map and
test again what it leaves; if that differs too, keep the shares instead of the values. Where a
*decreasing* linear map would do, that is reported: thresholds cannot represent it, as a node would
have to swap its children. On a symmetric attribute nobody can tell the two without labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes, Floats
from app.core.prevalence.tests.multiple import holm
from app.core.trees.batch import SortedBatch
from app.core.trees.column import TrainingColumn
from app.core.trees.ks import KolmogorovSmirnov, ks_test
from app.core.trees.linear import LinearMap, linear_map
from app.core.trees.linear_map_test import bootstrap_test, mirrored_test, plain_test
from app.core.trees.model import VersatileTree
from app.core.trees.options import STRATEGIES, Correction, TreeOptions
from app.core.trees.percentiles import Share, percentile, shares_below
from app.core.trees.results import AttributeShift, Kind, ThresholdChange
from app.core.trees.tree import Singles, Tree
from app.core.warnings import Warning, WarningCode


@dataclass(frozen=True, eq=False)
class AdaptedTree:
    """The tree with its thresholds adapted, and how that came about.

    ``tree``: of the same nodes.
    ``attributes``: d, what happened to each.
    ``thresholds``: one per deciding node, in order.
    ``warnings``: in the order of the attributes.
    """

    tree: Tree
    attributes: tuple[AttributeShift, ...]
    thresholds: tuple[ThresholdChange, ...]
    warnings: tuple[Warning, ...]


def adapt(
    model: VersatileTree,
    batch: SortedBatch,
    options: TreeOptions,
    class_weights: Floats | None = None,
) -> AdaptedTree:
    """Adapt ``model`` to a batch.

    ``class_weights``: C, P_dep / P_tr, if the priors have shifted: the training columns then
    enter all tests, means and shares as the mixture under the target priors.
    """
    tested = np.flatnonzero(~model.categorical).tolist()
    first = {a: _first_test(model.columns[a], batch.column(a), class_weights) for a in tested}
    p_values = adjusted_p_values([test.p_value for test in first.values()], options.correction)
    adjusted = dict(zip(first, p_values, strict=True))
    shifts, warnings = [], []
    for a, name in enumerate(model.attributes):
        if a not in first:
            shifts.append(AttributeShift(name, None, 1.0, False, "none"))
            continue
        one = _Attribute(name, model.columns[a], batch.column(a), class_weights, options)
        shift, more = one.decide(first[a], adjusted[a])
        shifts.append(shift)
        warnings += more
    return _with_thresholds(model, batch, shifts, warnings, class_weights)


def adjusted_p_values(p_values: Sequence[float], correction: Correction) -> list[float]:
    """As they are, or Holm's: max over the smaller ones of (d − rank) p, at most one."""
    if correction == "none" or not p_values:
        return list(p_values)
    adjusted: list[float] = holm(np.array(p_values)).tolist()
    return adjusted


def _first_test(
    column: TrainingColumn, batch: NDArray[np.floating], class_weights: Floats | None
) -> KolmogorovSmirnov:
    weights = None if class_weights is None else column.weights(class_weights)
    return ks_test(column.values, batch, weights)


@dataclass(frozen=True)
class _Attribute:
    """What one attribute is decided by: its training column, its batch and the options."""

    name: str
    column: TrainingColumn
    batch: NDArray[np.floating]
    class_weights: Floats | None
    options: TreeOptions

    def decide(
        self, first: KolmogorovSmirnov, p_value: float
    ) -> tuple[AttributeShift, list[Warning]]:
        """What to do, by the strategy."""
        steps = STRATEGIES[self.options.strategy]
        shift = AttributeShift(
            self.name, first, p_value, p_value < self.options.significance, "none"
        )
        if not len(self.batch) or not self.column.size:
            return shift, [_empty(self.name)]
        if (steps.tests and not shift.shifted) or not (steps.maps or steps.percentiles):
            return shift, []
        if not steps.maps:
            kind, warnings = self._percentiles()
            return replace(shift, kind=kind), warnings
        weights = self._weights
        linear = linear_map(self.column, self.batch, weights)
        if linear is None:
            return self._without_map(shift)
        shift = replace(shift, alpha=linear.alpha, beta=linear.beta)
        if not steps.percentiles:
            return replace(shift, kind="linear"), []
        second = self._second_test(linear, weights)
        shift = replace(shift, second=second)
        if second.p_value >= self.options.significance:
            return replace(shift, kind="linear"), []
        kind, warnings = self._percentiles()
        mirrored = mirrored_test(self.column, self.batch, linear, weights)
        if mirrored.p_value >= self.options.significance:
            warnings = [*warnings, _decreasing(self.name)]
        return replace(shift, kind=kind), warnings

    @property
    def _weights(self) -> Floats | None:
        return None if self.class_weights is None else self.column.weights(self.class_weights)

    def _second_test(self, linear: LinearMap, weights: Floats | None) -> KolmogorovSmirnov:
        if self.options.second_test == "plain":
            return plain_test(self.column, self.batch, linear, weights)
        return bootstrap_test(self.column, self.batch, linear, weights, self.options.seed)

    def _without_map(self, shift: AttributeShift) -> tuple[AttributeShift, list[Warning]]:
        """A deviation is zero: percentiles if the strategy has them, else nothing."""
        if not STRATEGIES[self.options.strategy].percentiles:
            return shift, [_constant(self.name)]
        kind, warnings = self._percentiles()
        return replace(shift, kind=kind), [_constant(self.name), *warnings]

    def _percentiles(self) -> tuple[Kind, list[Warning]]:
        if len(self.batch) >= self.options.minimum_batch:
            return "monotone", []
        return "none", [_few_rows(self.name, len(self.batch), self.options.minimum_batch)]


def _with_thresholds(
    model: VersatileTree,
    batch: SortedBatch,
    shifts: list[AttributeShift],
    warnings: list[Warning],
    class_weights: Floats | None,
) -> AdaptedTree:
    tree = model.tree
    adapted = tree.threshold.copy()
    changes: dict[int, ThresholdChange] = {}
    for a, shift in enumerate(shifts):
        nodes = tree.inner[tree.feature[tree.inner] == a]
        for change in _changes(model, batch, a, nodes, shift, class_weights):
            changes[change.node] = change
            adapted[change.node] = change.adapted
        worst = _worst([changes[node] for node in nodes.tolist()])
        shifts[a] = replace(shift, attained_share=worst)
    ordered = tuple(changes[node] for node in tree.inner.tolist())
    return AdaptedTree(tree.with_thresholds(adapted), tuple(shifts), ordered, tuple(warnings))


def _changes(
    model: VersatileTree,
    batch: SortedBatch,
    a: int,
    nodes: Codes,
    shift: AttributeShift,
    class_weights: Floats | None,
) -> list[ThresholdChange]:
    """What becomes of the thresholds of one attribute's nodes; infinite ones stay."""
    source = model.tree.threshold[nodes]
    ordered = list(zip(nodes.tolist(), source.tolist(), strict=True))
    name = shift.attribute
    if shift.kind == "none":
        return [ThresholdChange(node, name, t, t) for node, t in ordered]
    if shift.kind == "linear":
        assert shift.alpha is not None
        assert shift.beta is not None
        linear = LinearMap(shift.alpha, shift.beta)
        return [ThresholdChange(node, name, t, linear.threshold(t)) for node, t in ordered]
    shares = shares_below(model.columns[a], source, class_weights)
    return [
        ThresholdChange(node, name, t, *_by_share(t, share, batch.singles(a)))
        for (node, t), share in zip(ordered, shares, strict=True)
    ]


def _by_share(
    source: float, share: Share, batch: Singles
) -> tuple[float, float | None, float | None]:
    """The adapted threshold, R, and the share it attains; an infinite one stays."""
    if not np.isfinite(source):
        return source, None, None
    adapted, attained = percentile(batch, share)
    return adapted, share.value, attained


def _worst(changes: list[ThresholdChange]) -> float | None:
    """The attained share that is furthest from the one wanted."""
    off = [
        (abs(change.attained_share - change.share), change.attained_share)
        for change in changes
        if change.attained_share is not None and change.share is not None
    ]
    return max(off)[1] if off else None


def _empty(name: str) -> Warning:
    return Warning(
        WarningCode.NO_VALUES, f"{name}: no row has a value; its thresholds stay as they were"
    )


def _constant(name: str) -> Warning:
    words = "all its values are equal, in training or here, so that no linear map can be fitted"
    return Warning(
        WarningCode.CONSTANT_ATTRIBUTE, f"{name}: {words}; check where the values come from"
    )


def _few_rows(name: str, rows: int, least: int) -> Warning:
    words = f"percentiles of {rows} values are not reliable; its thresholds stay as they were"
    return Warning(WarningCode.FEW_VALUES, f"{name}: {words}. Send at least {least} rows")


def _decreasing(name: str) -> Warning:
    words = "a decreasing map explains it, which a tree's thresholds cannot represent"
    return Warning(WarningCode.DECREASING_MAP, f"{name}: {words}; turn its sign before sending it")
