"""Thresholds and class shares that have shifted together (paper, equation 7, and beyond it).

With the target priors known, training columns enter as mixtures under them. Unknown, they are
found as a fixed point: adapt, estimate the prevalence by maximum likelihood from the leaves that
the batch's rows end in, adapt again with columns weighted by it.

There can be several fixed points, as a map can imitate a change of the shares: fitted to moments
under any shares, it brings the batch to where they are estimated again. So the search starts
twice, from the source thresholds (nothing but the shares has changed) and from the source priors
(nothing but the attributes has), and the explanation that moves fewer attributes is taken; of two
that move as many, the one whose priors are nearer to the source's.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.errors import InvalidInput
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.trees.adapt import AdaptedTree, adapt
from app.core.trees.batch import SortedBatch
from app.core.trees.model import VersatileTree
from app.core.trees.options import TreeOptions
from app.core.warnings import Warning, WarningCode

Status = Literal["given", "converged", "cycle", "max-rounds"]
Start = Literal["source-thresholds", "source-priors"]

MOST_ROUNDS = 20
STANDS_STILL = 1e-6
"""Largest change of a share, or of a threshold against its size, that counts as none."""
FEW_LABELS = 30
APART = 0.02
"""Total variation between two explanations that makes them different."""


@dataclass(frozen=True, eq=False)
class OutputShift:
    """The priors that the adaptation assumed.

    ``target_priors``: C.
    ``status``: ``given``; or, of the search, ``converged``, ``cycle`` (the same states came again,
        the last is reported) or ``max-rounds``.
    ``start``: where the search began that was taken; None for given priors.
    ``trace``: the priors of its rounds, C each.
    ``cycle``: the length of the cycle, in rounds; 0 where there was none.
    """

    target_priors: Floats
    status: Status
    start: Start | None = None
    trace: tuple[Floats, ...] = ()
    cycle: int = 0

    @property
    def rounds(self) -> int:
        """Times that the thresholds were adapted."""
        return len(self.trace)


@dataclass(frozen=True, eq=False)
class Search:
    """One search for the target priors.

    ``adapted``: the tree under the priors that it ended with.
    ``shift``: these priors, and how it ended.
    """

    adapted: AdaptedTree
    shift: OutputShift

    @property
    def moved(self) -> int:
        """Attributes whose thresholds it changed."""
        return sum(shift.kind != "none" for shift in self.adapted.attributes)


def adapt_under(
    model: VersatileTree, batch: SortedBatch, options: TreeOptions, target_priors: Floats
) -> Search:
    """Adapt under target priors that are known."""
    adapted = adapt(model, batch, options, _weights(model, target_priors))
    return Search(adapted, OutputShift(target_priors, "given"))


def adapt_and_estimate(
    model: VersatileTree, batch: SortedBatch, options: TreeOptions, most_rounds: int = MOST_ROUNDS
) -> tuple[Search, tuple[Warning, ...]]:
    """Adapt under priors that are estimated with the thresholds."""
    untouched = leaf_prevalence(model, model.tree.leaves(batch.rows))
    searches = [
        _search(model, batch, options, untouched, "source-thresholds", most_rounds),
        _search(model, batch, options, model.priors, "source-priors", most_rounds),
    ]

    def cost(search: Search) -> tuple[bool, int, float]:
        unsettled = search.shift.status != "converged"
        return unsettled, search.moved, _apart(search.shift.target_priors, model.priors)

    best, other = sorted(searches, key=cost)
    return best, _doubts(best, other)


def leaf_prevalence(model: VersatileTree, leaves: Codes) -> Floats:
    """Maximum-likelihood class shares of rows that ended in these leaves, C."""
    counts = np.bincount(leaves, minlength=len(model.posteriors)).astype(np.float64)
    occupied = counts > 0
    likelihood = Likelihood.of(model.posteriors[occupied], model.priors, counts[occupied])
    return mle(likelihood).prevalence


def labelled_priors(labels: Codes, classes: int) -> tuple[Floats, tuple[Warning, ...]]:
    """Class shares among some labelled rows of the batch, drawn without regard to their class.

    ``InvalidInput`` for no rows at all.
    """
    if len(labels) == 0:
        raise InvalidInput.at("/deployment_labels", "holds no labels; send at least one")
    counts = np.bincount(labels, minlength=classes).astype(np.float64)
    warnings: tuple[Warning, ...] = ()
    if len(labels) < FEW_LABELS:
        words = f"the class shares come from {len(labels)} labelled rows only; label more of them"
        warnings = (Warning(WarningCode.FEW_LABELS, words),)
    return counts / counts.sum(), warnings


def _search(
    model: VersatileTree,
    batch: SortedBatch,
    options: TreeOptions,
    priors: Floats,
    start: Start,
    most_rounds: int,
) -> Search:
    """Rounds of adapting under priors and estimating them again."""
    seen: list[tuple[Floats, Floats]] = []
    trace: list[Floats] = []
    status: Status = "max-rounds"
    cycle = 0
    while True:
        deadline.check()
        adapted = adapt(model, batch, options, _weights(model, priors))
        trace.append(priors)
        state = priors, adapted.tree.threshold
        again = [i for i, earlier in enumerate(seen) if _same(earlier, state)]
        if again:
            cycle = len(seen) - again[-1]
            status = "cycle"
            break
        seen.append(state)
        estimated = leaf_prevalence(model, adapted.tree.leaves(batch.rows))
        if np.abs(estimated - priors).max() <= STANDS_STILL:
            status = "converged"
            break
        if len(trace) >= most_rounds:
            break
        priors = estimated
    return Search(adapted, OutputShift(priors, status, start, tuple(trace), cycle))


def _same(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> bool:
    with np.errstate(invalid="ignore"):
        near = np.isclose(one[1], other[1], rtol=STANDS_STILL, atol=0.0)
    return bool(np.abs(one[0] - other[0]).max() <= STANDS_STILL and near.all())


def _weights(model: VersatileTree, priors: Floats) -> Floats | None:
    """None under the source priors, so that integer counts stay integers."""
    weights = model.class_weights(priors)
    return None if np.allclose(weights, 1.0, rtol=0.0, atol=1e-12) else weights


def _apart(one: Floats, other: Floats) -> float:
    return float(np.abs(one - other).sum() / 2)


def _doubts(best: Search, other: Search) -> tuple[Warning, ...]:
    warnings = []
    if best.shift.status != "converged":
        how = f"came back to themselves every {best.shift.cycle} rounds"
        if best.shift.status == "max-rounds":
            how = f"still moved after {best.shift.rounds} rounds"
        words = f"thresholds and class shares {how}; send target_priors if you know them"
        warnings.append(Warning(WarningCode.OUTPUT_SHIFT_UNSETTLED, words))
    settled = other.shift.status == "converged"
    distance = _apart(best.shift.target_priors, other.shift.target_priors)
    if settled and other.moved <= best.moved and distance > APART:
        words = (
            "a change of the class shares and a change of the attributes explain these rows "
            "equally well; send target_priors or some deployment_labels to tell them apart"
        )
        warnings.append(Warning(WarningCode.OUTPUT_SHIFT_AMBIGUOUS, words))
    return tuple(warnings)
