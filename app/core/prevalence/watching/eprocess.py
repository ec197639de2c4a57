"""An alarm that may be looked for after every batch, as often as one likes.

With any predictable choice of alternatives p_t (made before the rows they are used on) and p* the
source's effective priors (``source_set``), E_t = Π_i d_i(p_t) / d_i(p*) is a nonnegative
supermartingale without a shift: E d(p)/d(p*) = Σ_k p_k m_k(p*) ≤ 1, since p* is the maximum in the
population, whether or not the calibrated ratios are right (p* is the reverse information
projection; Larsson, Ramdas and Ruf 2024, "The numeraire e-variable"). So is any mixture of such
products, and by Ville's inequality (1939) it ever reaches 1/α with probability at most α. p* is
unknown, so that the *running* product is divided by the largest likelihood over the set of the
source, as in universal inference (Wasserman, Ramdas and Balakrishnan 2020): the result is at most
E_t whenever the set holds p*, and false alarms have probability at most α + ``source_level``.

The numerator is Robbins' (1970) method of mixtures, over sequences of alternatives: fixed shares
(odds of a class multiplied by some factor), the priors estimated from all rows before, and from the
recent ones. Between batches the share 1/(t + 1) of the weight is spread evenly over all of them
(Herbster and Warmuth's fixed share), so that a shift that comes after months is found at the price
of ln t, and not of the months' evidence against it. The denominator is bounded by ``null_bound``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from app.core.arrays import Floats
from app.core.json_types import JsonObject, JsonValue
from app.core.lazy import cached_property
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.watching.null_bound import NullBound, null_bound
from app.core.prevalence.watching.source_set import SourceSet

FACTORS = (0.1, 0.25, 0.5, 0.75, 1.3, 1.6, 2.0, 3.0, 5.0, 10.0)
"""Factors of the odds of one class, in the fixed alternatives."""
RECENT = 0.9
"""What is left of a batch's part in the recent sums when the next one comes."""
LEAST = 0.05
"""No alternative gives a class less than this part of its source prior."""


@dataclass(frozen=True, eq=False)
class EProcessState:
    """What is kept of all batches so far; a few hundred numbers at most.

    ``log_weights``: ln of the likelihoods, over that of p0, that each alternative's weight has
    grown to; ``sums``: of ``null_bound``; ``slopes``, ``recent``: Σ of the rows' slopes, all and
    recent, with ``rows`` and ``recent_rows`` of them. ``log_e``: now; ``highest``: ever.
    """

    log_weights: Floats
    sums: Floats
    slopes: Floats
    recent: Floats
    rows: float = 0.0
    recent_rows: float = 0.0
    batches: int = 0
    log_e: float = 0.0
    highest: float = 0.0

    def as_json(self) -> dict[str, object]:
        """Numbers and lists of numbers."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}

    @classmethod
    def from_json(cls, content: Mapping[str, JsonValue]) -> "EProcessState":
        """From what ``as_json`` gave."""
        arrays: JsonObject = {
            k: np.array(v) if isinstance(v, list) else v for k, v in content.items()
        }
        return cls(**arrays)


@dataclass(frozen=True, eq=False)
class EProcess:
    """The e-process of one stream against a source; the same for the same version."""

    sources: SourceSet

    def start(self) -> EProcessState:
        """The state before any batch."""
        experts, q = len(self._fixed) + 2, self.sources.degrees_of_freedom
        even = np.full(experts, -np.log(experts))
        return EProcessState(even, np.zeros(self._bound.length), np.zeros(q), np.zeros(q))

    def update(self, state: EProcessState, likelihood: Likelihood) -> EProcessState:
        """The state after one more batch; its rows are gone through once."""
        if likelihood.size == 0:
            return state
        gains, sums, slopes = self._pass(likelihood, self._alternatives(state))
        sums = state.sums + sums
        total = float(logsumexp(grown := state.log_weights + gains))
        log_e = total - self._bound.largest(sums)
        share = 1.0 / (state.batches + 2)
        spread = np.log(share / len(grown)) + total
        return EProcessState(
            np.logaddexp(np.log1p(-share) + grown, spread),
            sums,
            state.slopes + slopes,
            RECENT * state.recent + slopes,
            state.rows + likelihood.size,
            RECENT * state.recent_rows + likelihood.size,
            state.batches + 1,
            log_e,
            max(state.highest, log_e),
        )

    def p_value(self, state: EProcessState) -> float:
        """Always valid: min(1, 1 / max E), plus the probability that the set misses the source.

        It ever falls to α without a shift with probability at most α.
        """
        missed = 0.0 if self.sources.exact else self.sources.source_level
        return min(1.0, missed + float(np.exp(-max(state.highest, 0.0))))

    def detected(self, state: EProcessState, level: float) -> bool:
        """Whether the stream has ever reached 1/``level``, given that the set holds the source."""
        return bool(state.highest >= -np.log(level))

    @cached_property
    def _bound(self) -> NullBound:
        return null_bound(self.sources)

    @cached_property
    def _fixed(self) -> Floats:
        """The source priors, and those with the odds of one class changed."""
        source = self.sources.source
        known = np.flatnonzero(source > 0)
        alternatives = [source]
        # With two classes the second one's factors are the first one's, turned round.
        for k in known[1:] if len(known) == 2 else known if len(known) > 2 else ():
            for factor in FACTORS:
                p = source.copy()
                p[k] *= factor
                alternatives.append(p / p.sum())
        return np.array(alternatives)

    @cached_property
    def _inverse(self) -> Floats:
        """From a mean slope to a change of the shares, C × q: B (BᵀHB)⁻¹."""
        basis = self.sources.basis
        information = basis.T @ self.sources.information @ basis
        return np.asarray(basis @ np.linalg.inv(information))

    def _alternatives(self, state: EProcessState) -> Floats:
        """Priors to bet on for the next batch, J × C.

        E d(p) slopes are linear in p: the mean slope over H is an unbiased estimate, drawn to p0 by
        the validation rows, or by as many rows as an ordinary batch has.
        """
        usual = state.rows / max(state.batches, 1)
        prior = self.sources.rows if np.isfinite(self.sources.rows) else usual
        return np.vstack(
            [
                self._fixed,
                self._estimate(state.slopes, state.rows + prior),
                self._estimate(state.recent, state.recent_rows + usual),
            ]
        )

    def _estimate(self, slopes: Floats, rows: float) -> Floats:
        source = self.sources.source
        if rows <= 0:
            return source
        p = np.maximum(source + self._inverse @ slopes / rows, LEAST * source)
        shares: Floats = p / p.sum()
        return shares

    def _pass(self, likelihood: Likelihood, alternatives: Floats) -> tuple[Floats, Floats, Floats]:
        """Log-likelihoods over that of p0 of J alternatives, sums of the bound, and of slopes."""
        known = likelihood.known
        at = np.column_stack([self.sources.source, alternatives.T, self.sources.basis])[known]
        # A factor of all densities goes when they are divided by that at the source priors.
        at *= (likelihood.ratio / likelihood.ratio.max())[:, None]
        J = len(alternatives)
        gains, sums = np.zeros(J), np.zeros(self._bound.length)
        slopes = np.zeros(self.sources.degrees_of_freedom)
        for block, block_weights in likelihood.informative:
            densities = block @ at
            densities /= densities[:, :1].copy()
            weights = np.ones(len(block)) if block_weights is None else block_weights
            gains += weights @ np.log(densities[:, 1 : J + 1])
            u = densities[:, J + 1 :]
            sums += self._bound.sums(u, weights)
            slopes += weights @ u
        return gains, sums, slopes
