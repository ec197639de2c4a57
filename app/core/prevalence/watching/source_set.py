"""The source priors that the validation set leaves possible, fixed once for all windows.

What a window without a shift is compared with is not p0 but p*, the maximum of the expected
log-likelihood under the source with the fitted calibration. p* differs from p0 by the error of n
validation rows, the same in every window. Two facts make it all that matters of that error:

- d_i(p) is linear in p, so that the Hessian is minus the second moment of the score at every p,
  whether or not the calibrated ratios are right. At p* the score has mean zero, and
  2N (ℓ(p̂) − ℓ(p*)) is chi-square. A wrong calibration moves p*; it does not widen the statistic.
- p0 is the maximum of the validation rows' own likelihood: their mean calibrated posterior is p0.
  So p* lies in {p : 2n (ℓ_v(p0) − ℓ_v(p)) ≤ c}, c a chi-square quantile, with the confidence of c.

ℓ_v is kept as that of a small experiment with the same information: J outputs with conditional
shares M (J × C) and output shares v = M p0, so that 2n (ℓ_v(p0) − ℓ_v(p)) = 2n KL(v ‖ M p). For
predicted outputs M is the confusion matrix itself. For posteriors it is the square root of
M[j, k] = E(g_j | class k), taken in the inner product of the source priors: with D = diag p0,
D^½ (D^-½ E(ggᵀ) D^-½)^½ D^-½. The set keeps to the simplex, and is skewed as counts are.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, rel_entr

from app.core.arrays import Floats
from app.core.lazy import cached_property
from app.core.prevalence.likelihood.identifiability import null_directions
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.source import SourceModel
from app.core.prevalence.uncertainty.covariance import OutputError

SOURCE_LEVEL = 0.1
"""How many of all sources may lie outside their set, and exceed the budget: one in ten."""
SEEN = 1e-12
"""Eigenvalues below this share of the largest are directions that nothing tells apart."""


@dataclass(frozen=True, eq=False)
class SourceSet:
    """{p : 2 ``rows`` KL(M p0 ‖ M p) ≤ ``limit``}: it has p* for all but ``source_level`` sources.

    ``source``: p0, C values; ``conditional``: M, J × C, a column per class; ``rows``: n, infinite
    for priors that are taken as exact: then the set is p0 alone.
    """

    source: Floats
    conditional: Floats
    rows: float
    source_level: float

    @classmethod
    def of(
        cls, model: SourceModel, outputs: bool = False, source_level: float = SOURCE_LEVEL
    ) -> "SourceSet":
        """Of a version; ``outputs``: for predicted outputs rather than posteriors.

        The errors of priors and calibration, or of priors and confusion matrix, are those of the
        validation rows. A confusion matrix without them varies by its counts, the stated priors
        being exact; stated priors alone are exact.
        """
        if outputs:
            return cls._of_outputs(model, source_level)
        if model.validation_size is None or model.soft is None:
            return cls(model.priors, np.eye(len(model.priors)), np.inf, source_level)
        moment = _second_moment(model)
        conditional = _root(moment, model.priors)
        seen = _information(conditional, model.priors)
        # Where the root has negative entries, fewer rows stand for what it has lost.
        share = _smallest_ratio(_hessian(moment, model.priors), seen, model.priors)
        return cls(model.priors, conditional, model.validation_size * share, source_level)

    @classmethod
    def _of_outputs(cls, model: SourceModel, source_level: float) -> "SourceSet":
        source = model.output_priors
        assert model.confusion is not None
        conditional, rows = model.confusion.conditional, model.output_validation_size
        if rows is None:
            shares = conditional @ source
            likelihood = Likelihood.of_outputs(conditional, source, shares)
            H, _ = likelihood.hessian(source)
            added = OutputError(model.confusion, shares).of_multipliers(likelihood, source, H)
            # The error of p* is H⁻¹ K H⁻¹; n H must not promise more than its inverse.
            rows = _smallest_ratio(H, added, source)
        return cls(source, conditional, rows, source_level)

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal directions (C × q) of the simplex around p0 that the set bounds."""
        known = np.flatnonzero(self.source > 0)
        tangent = _tangent(self.source)
        unseen = null_directions(self.information, self.source > 0)
        if unseen.shape[1] == 0 or len(known) < 2:
            return tangent
        rest = tangent - unseen @ (unseen.T @ tangent)
        left, size, _ = np.linalg.svd(rest, full_matrices=False)
        return np.asarray(left[:, size > 0.5])

    @property
    def degrees_of_freedom(self) -> int:
        """Of the statistic of every window: the dimensions that the source tells apart."""
        return int(self.basis.shape[1])

    @property
    def exact(self) -> bool:
        """Whether the set is p0 alone."""
        return not np.isfinite(self.rows) or self.degrees_of_freedom == 0

    @cached_property
    def limit(self) -> float:
        """c, the quantile of chi-square that is exceeded with probability ``source_level``."""
        return float(chdtri(self.degrees_of_freedom, self.source_level))

    @cached_property
    def shares(self) -> Floats:
        """V = M p0, J values."""
        shares: Floats = self.conditional @ self.source
        return shares

    @cached_property
    def information(self) -> Floats:
        """H of one validation row at p0, C × C."""
        return _information(self.conditional, self.source)

    def distance(self, p: Floats) -> float:
        """2n KL(M p0 ‖ M p); infinite where p excludes an output."""
        if self.exact:
            return 0.0 if np.allclose(p, self.source, 0, 1e-15) else np.inf
        return 2 * self.rows * float(rel_entr(self.shares, self.conditional @ p).sum())

    def inside(self, p: Floats) -> Floats:
        """P, or where the way to it from the source priors leaves the set."""
        if self.distance(p) <= self.limit:
            return p
        change = p - self.source

        def excess(step: float) -> float:
            return min(self.distance(self.source + step * change), 1e300) - self.limit

        return np.asarray(self.source + float(brentq(excess, 0.0, 1.0)) * change)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The ends of the share of the second known class, for two of them."""
        zero, one = np.flatnonzero(self.source > 0)
        centre = float(self.source[one])
        if self.exact:
            return centre, centre

        def excess(theta: float) -> float:
            p = np.zeros(len(self.source))
            p[zero], p[one] = 1.0 - theta, theta
            return min(self.distance(p), 1e300) - self.limit

        ends = [
            end if excess(end) <= 0 else float(brentq(excess, end, centre, xtol=1e-14))
            for end in (0.0, 1.0)
        ]
        return ends[0], ends[1]


def _second_moment(model: SourceModel) -> Floats:
    """E g gᵀ of calibrated posteriors, C × C, without a look at the rows.

    Of calibrated ones E(g g_k) = E(g; class k), which the means by class tell; uncalibrated ones
    have their second moment about the label frequencies in the model.
    """
    assert model.soft is not None
    if model.calibration.method == "none" and model.second_moment is not None:
        assert model.mean_gap is not None
        labels = model.priors - model.mean_gap
        cross = np.outer(model.mean_gap, labels)
        moment: Floats = model.second_moment + cross + cross.T + np.outer(labels, labels)
        return moment
    joint = model.soft * model.priors
    return np.asarray(0.5 * (joint + joint.T))


def _hessian(moment: Floats, source: Floats) -> Floats:
    inverse = np.divide(1.0, source, out=np.zeros(len(source)), where=source > 0)
    return np.asarray(inverse[:, None] * moment * inverse)


def _root(moment: Floats, source: Floats) -> Floats:
    """M with columns that sum to one and Mᵀ diag(1 / M p0) M = D⁻¹ E(ggᵀ) D⁻¹, if none is < 0."""
    half = np.sqrt(source)
    inverse = np.divide(1.0, half, out=np.zeros(len(half)), where=half > 0)
    values, vectors = np.linalg.eigh(inverse[:, None] * moment * inverse)
    root = (vectors * np.sqrt(np.clip(values, 0.0, 1.0))) @ vectors.T
    M = np.maximum(half[:, None] * root * inverse, 0.0)
    total = M.sum(axis=0)
    return np.asarray(np.where(total > 0, M / np.where(total > 0, total, 1.0), 0.0))


def _information(conditional: Floats, source: Floats) -> Floats:
    shares = conditional @ source
    inverse = np.divide(1.0, shares, out=np.zeros(len(shares)), where=shares > 0)
    return np.asarray(conditional.T @ (inverse[:, None] * conditional))


def _tangent(source: Floats) -> Floats:
    """Orthonormal directions of known classes that sum to zero, C × (K − 1)."""
    known = np.flatnonzero(source > 0)
    basis = np.zeros((len(source), max(len(known) - 1, 0)))
    basis[known] = np.linalg.qr(np.eye(len(known)) - 1.0 / len(known))[0][:, :-1]
    return basis


def _smallest_ratio(most: Floats, other: Floats, source: Floats) -> float:
    """The largest t ≤ … with t · ``other`` ⪯ ``most`` on the simplex around ``source``."""
    basis = _tangent(source)
    values, vectors = np.linalg.eigh(basis.T @ most @ basis)
    seen = values > SEEN * max(float(values.max(initial=0.0)), 1e-300)
    white = vectors[:, seen] / np.sqrt(values[seen])
    largest = np.linalg.eigvalsh(white.T @ (basis.T @ other @ basis) @ white).max(initial=0.0)
    return float(1.0 / largest) if largest > 0 else np.inf
