"""One batch in, one adaptation out; and further rows scored with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes, Floats
from app.core.trees.adapt import AdaptedTree, adapt
from app.core.trees.batch import SortedBatch
from app.core.trees.model import VersatileTree, check_rows
from app.core.trees.options import TreeOptions
from app.core.trees.output_shift import (
    OutputShift,
    adapt_and_estimate,
    adapt_under,
    labelled_priors,
)
from app.core.trees.results import AttributeShift, ThresholdChange
from app.core.warnings import Warning


@dataclass(frozen=True, eq=False)
class TreeAdaptation:
    """A source tree adapted to a batch of N rows.

    ``options``: as asked for.
    ``attributes``: d, what happened to each.
    ``thresholds``: one per deciding node, in the order of the nodes.
    ``output_shift``: the target priors it assumed; None for those of the source.
    ``size``: N.
    ``prevalence``: C shares of the predictions for the batch, by count.
    ``changed``: how many of these differ from the source tree's.
    ``leaves``: N, where the rows ended, from which ``predictions_at`` makes them.
    ``warnings``: in the order in which they came up.
    """

    options: TreeOptions
    attributes: tuple[AttributeShift, ...]
    thresholds: tuple[ThresholdChange, ...]
    output_shift: OutputShift | None
    size: int
    prevalence: Floats
    changed: int
    leaves: Codes
    warnings: tuple[Warning, ...]

    @property
    def moved(self) -> tuple[AttributeShift, ...]:
        """The attributes whose thresholds were changed."""
        return tuple(shift for shift in self.attributes if shift.kind != "none")

    @property
    def target_priors(self) -> Floats | None:
        """C, None for those of the source."""
        return None if self.output_shift is None else self.output_shift.target_priors


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a tree says of N rows.

    ``leaves``: N nodes.
    ``decisions``: N class codes, each the class of most *training* rows of the leaf, whatever the
        priors.
    ``posteriors``: N × C, calibrated, under the target priors.
    """

    leaves: Codes
    decisions: Codes
    posteriors: Floats


def adaptation(
    model: VersatileTree,
    rows: NDArray[np.floating],
    options: TreeOptions,
    target_priors: Floats | Literal["estimate"] | None = None,
    deployment_labels: Codes | None = None,
) -> TreeAdaptation:
    """Adapt ``model`` to N × d rows, NaN where missing.

    ``target_priors``: C shares that sum to one; ``"estimate"`` finds them with the thresholds;
    None leaves those of the source, unless ``deployment_labels``, class codes of some labelled
    rows of the same population, give them. Raises ``InvalidInput`` for a wrong width, no rows,
    and infinities.
    """
    check_rows(rows, len(model.attributes), "/features")
    batch = SortedBatch(rows)
    warnings: tuple[Warning, ...] = ()
    if deployment_labels is not None and target_priors is None:
        target_priors, warnings = labelled_priors(deployment_labels, len(model.classes))
    adapted, shift, more = _adapt(model, batch, options, target_priors)
    leaves = adapted.tree.leaves(rows)
    per_node = np.bincount(leaves, minlength=len(model.decisions))
    counts = np.bincount(model.decisions, per_node, len(model.classes))
    return TreeAdaptation(
        options,
        adapted.attributes,
        adapted.thresholds,
        shift,
        len(rows),
        counts / counts.sum(),
        _count_changed(model, adapted, leaves, rows),
        leaves,
        (*warnings, *adapted.warnings, *more),
    )


def predictions(
    model: VersatileTree,
    thresholds: Sequence[ThresholdChange],
    target_priors: Floats | None,
    rows: NDArray[np.floating],
) -> Predictions:
    """Score N × d rows with the thresholds of an adaptation and the priors it assumed."""
    check_rows(rows, len(model.attributes), "/features")
    adapted = model.tree.threshold.copy()
    adapted[[change.node for change in thresholds]] = [change.adapted for change in thresholds]
    return predictions_at(model, model.tree.with_thresholds(adapted).leaves(rows), target_priors)


def predictions_at(
    model: VersatileTree, leaves: Codes, target_priors: Floats | None
) -> Predictions:
    """What rows that ended in these leaves are taken for."""
    posteriors = model.posteriors
    if target_priors is not None:
        posteriors = model.posteriors_under(target_priors)
    return Predictions(leaves, model.decisions[leaves], posteriors[leaves])


def _count_changed(
    model: VersatileTree, adapted: AdaptedTree, leaves: Codes, rows: NDArray[np.floating]
) -> int:
    """Rows that the source tree predicts as another class."""
    if all(shift.kind == "none" for shift in adapted.attributes):
        return 0
    before = model.tree.leaves(rows)
    return int(np.count_nonzero(model.decisions[leaves] != model.decisions[before]))


def _adapt(
    model: VersatileTree,
    batch: SortedBatch,
    options: TreeOptions,
    target_priors: Floats | Literal["estimate"] | None,
) -> tuple[AdaptedTree, OutputShift | None, tuple[Warning, ...]]:
    if target_priors is None:
        return adapt(model, batch, options), None, ()
    if isinstance(target_priors, str):
        search, warnings = adapt_and_estimate(model, batch, options)
        return search.adapted, search.shift, warnings
    search = adapt_under(model, batch, options, target_priors)
    return search.adapted, search.shift, ()
