"""Sampling covariance of the maximum-likelihood priors.

With H the Hessian of ℓ at p (in p, on the classes that are free) the batch contributes
(H⁻¹ − p pᵀ) / N for the population's shares, and (H⁻¹ − diag p) / N for the realised shares of
these very rows. The source contributes H⁻¹ K H⁻¹, K the covariance that it adds to the multipliers
m: with q the adjusted posteriors and D = diag p,
dm = (diag m − H D) dβ + D⁻¹ mean_i (diag q_i − q_i q_iᵀ) diag z_i ds; z the log-scores and s the
calibration's scales, all equal or one per class.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from app.core.arrays import Floats, Mask, add_columns, divide_rows, multiply_columns, row_sums
from app.core.prevalence.calibration import Calibration, Scaling, at_least, log_scores
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.likelihood.likelihood import Likelihood

Of = Literal["population", "batch"]
TINY = 1e-300
UNBOUNDED = 1e300
"""A variance that stands for infinity."""


@dataclass(frozen=True)
class SourceError:
    """Uncertainty of calibrated posteriors.

    ``covariance``: of (s, β), the scales and the biases; see ``nuisance_covariance``.
    ``calibration``: where the posteriors come from.
    """

    covariance: Floats
    calibration: Calibration

    def through(
        self, directions: Floats, likelihood: Likelihood, p: Floats, hessian: Floats
    ) -> Floats:
        """Covariance that the source adds to Dᵀm at p, for C × q ``directions`` D.

        They come first: near a share of zero effects on m itself are beyond the range of numbers.
        """
        effect = directions.T @ self.effect(likelihood, p, hessian)
        return effect @ self.covariance @ effect.T

    def effect(self, likelihood: Likelihood, p: Floats, hessian: Floats) -> Floats:
        """∂m/∂(s, β) at p, C × (1 + C) or C × 2C: diag m − H D for β."""
        classes = len(p)
        scales = len(self.covariance) - classes
        effect = np.zeros((classes, scales + classes))
        effect[:, scales:] = np.diag(hessian @ p) - hessian * p
        uncertain = self.covariance[:scales, :scales].any()
        if uncertain and isinstance(self.calibration, Scaling):
            common = self.calibration.common if scales == 1 else None
            if common is None:
                moved = _scale_effects(likelihood, p, self.calibration)
            else:
                moved = _scale_effect(likelihood, p, common, self.calibration.bias)
            inverse = np.divide(1.0, p, out=np.zeros(classes), where=p > 0)
            effect[:, :scales] = moved * inverse[:, None]
        return effect


@dataclass(frozen=True)
class OutputError:
    """Uncertainty of a confusion matrix, whose rows are multinomial; ``counts``: of the batch.

    One pseudo-count per row is spread over the cells, so that an empty cell is not certain.
    """

    confusion: ConfusionMatrix
    counts: Floats

    def through(
        self, directions: Floats, likelihood: Likelihood, p: Floats, hessian: Floats
    ) -> Floats:
        """Covariance that the confusion matrix adds to Dᵀm at p, for C × q ``directions`` D."""
        return directions.T @ self.of_multipliers(likelihood, p, hessian) @ directions

    def of_multipliers(self, likelihood: Likelihood, p: Floats, hessian: Floats) -> Floats:
        """Covariance that the confusion matrix adds to m at p, C × C."""
        M = self.confusion.conditional
        density = M @ p
        seen = (self.counts > 0) & (density > 0)
        M, density = M[seen], density[seen]
        shares = self.counts[seen] / likelihood.size
        smoothed = self.confusion.counts + 1.0 / len(self.counts)
        rows = smoothed.sum(axis=1)
        cells = (smoothed / rows[:, None]).T[seen]
        added = np.zeros((len(p), len(p)))
        for k in np.flatnonzero(p > 0):
            # Effect of M[j, k] on the multipliers, C × J.
            effect = -p[k] * (M / density[:, None]).T * (shares / density)
            effect[k] += shares / density
            mean = effect @ cells[:, k]
            added += ((effect * cells[:, k]) @ effect.T - np.outer(mean, mean)) / rows[k]
        return added


Uncertainty = SourceError | OutputError


@dataclass(frozen=True)
class Covariance:
    """C × C covariances of the estimated shares; zero rows for classes that are not free.

    ``target``: from the batch alone, for the population.
    ``total``: with the source, for what was asked (population or batch).
    """

    target: Floats
    total: Floats

    @property
    def standard_errors(self) -> Floats:
        """Square roots of the total variances, C."""
        errors: Floats = np.sqrt(np.maximum(self.total.diagonal(), 0.0))
        return errors


def covariance(
    likelihood: Likelihood,
    p: Floats,
    hessian: Floats,
    free: Mask,
    source: Uncertainty | None = None,
    of: Of = "population",
) -> Covariance:
    """Covariance of p at the maximum, the classes in ``free`` being free to vary."""
    inverse = inverse_hessian(hessian, free)
    N = likelihood.size
    target = (inverse - np.outer(p, p)) / N
    target[~free] = target[:, ~free] = 0.0
    total = target if of == "population" else (inverse - np.diag(p)) / N
    if source is not None:
        # A class that no row speaks of has no bounds; what overflows then is as good as infinite.
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + source.through(inverse, likelihood, p, hessian)
        total = np.nan_to_num(total, nan=0.0, posinf=UNBOUNDED, neginf=-UNBOUNDED)
    return Covariance(target, total)


def covariance_at_vertex(
    likelihood: Likelihood,
    p: Floats,
    hessian: Floats,
    moving: Mask,
    source: Uncertainty | None = None,
) -> Covariance:
    """Covariance where p is a vertex and gives to one class only: along δ, their difference.

    S = δ δᵀ / (N δᵀHδ), which needs no inverse: H is singular where all rows are alike. The shares
    of the rows vary as those of the population do, since diag p = p pᵀ.
    """
    one, other = np.flatnonzero(moving)
    change = np.zeros(len(p))
    change[one], change[other] = 1.0, -1.0
    information = float(change @ hessian @ change)
    if information <= 0:
        unbounded = UNBOUNDED * np.outer(change, change)
        return Covariance(unbounded, unbounded)
    alone = 1.0 / (likelihood.size * information)
    total = alone
    if source is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            directions = change[:, None] / information
            total += float(source.through(directions, likelihood, p, hessian)[0, 0])
        total = min(total, UNBOUNDED) if total == total else UNBOUNDED
    return Covariance(alone * np.outer(change, change), total * np.outer(change, change))


def inversion_covariance(confusion: ConfusionMatrix, counts: Floats, p: Floats) -> Floats:
    """Covariance of an adjusted count M⁺v, C × C, by linear expansion in v and M.

    ``counts``: J outputs of the batch; ``p``: the estimate. Multinomial v and rows of M, one
    pseudo-count each spread over the cells.
    """
    inverse = np.linalg.pinv(confusion.conditional, rcond=1e-10)
    spread = _multinomial(counts)
    for k, row in enumerate(confusion.counts):
        spread += p[k] ** 2 * _multinomial(row)
    moved: Floats = inverse @ spread @ inverse.T
    return moved


def _multinomial(counts: Floats) -> Floats:
    smoothed = counts + 1.0 / len(counts)
    total = smoothed.sum()
    shares = smoothed / total
    covariance: Floats = (np.diag(shares) - np.outer(shares, shares)) / total
    return covariance


def widening(
    likelihood: Likelihood,
    p: Floats,
    hessian: Floats,
    change: Floats,
    source: Uncertainty,
) -> float:
    """(δᵀΣ⁻¹δ) / (δᵀS⁻¹δ) ≤ 1 for δ = ``change``, Σ the covariance with the source, S without.

    On the tangent space of the simplex, spanned by the classes that p or δ touches; one where δ
    changes nothing that the batch sees.
    """
    touched = np.flatnonzero((p > 0) | (change != 0))
    basis = np.zeros((len(p), len(touched) - 1))
    # Columns that sum to zero: differences from the mean, orthonormal.
    basis[touched] = np.linalg.qr(np.eye(len(touched)) - 1.0 / len(touched))[0][:, :-1]
    information = likelihood.size * basis.T @ hessian @ basis
    values, vectors = np.linalg.eigh(information)
    informative = values > 1e-10 * max(float(values.max(initial=0.0)), 1e-300)
    root = vectors[:, informative] * np.sqrt(values[informative])
    delta = root.T @ (basis.T @ change)
    alone = float(delta @ delta)
    if alone <= 0:
        return 1.0
    directions = likelihood.size * basis @ (root / values[informative])
    whitened = source.through(directions, likelihood, p, hessian)
    total = np.eye(len(whitened)) + whitened
    return min(float(delta @ np.linalg.solve(total, delta)) / alone, 1.0)


def inverse_hessian(hessian: Floats, free: Mask) -> Floats:
    """H⁻¹ on the free classes, zero elsewhere; the pseudo-inverse where H is singular.

    Of a class that hardly a row speaks of it is as good as infinite.
    """
    positions = np.flatnonzero(free)
    block = hessian[np.ix_(positions, positions)]
    length = np.sqrt(block.diagonal())
    scale = np.where(length > 0, length, 1.0)
    scaled = block / scale[:, None] / scale
    inverse = np.zeros_like(hessian)
    try:
        within = cho_solve(cho_factor(scaled), np.eye(len(positions)))
    except np.linalg.LinAlgError:
        within = np.linalg.pinv(scaled, rcond=1e-12, hermitian=True)
    with np.errstate(over="ignore", invalid="ignore"):
        within = within / scale[:, None] / scale
    inverse[np.ix_(positions, positions)] = np.clip(within, -UNBOUNDED, UNBOUNDED)
    return inverse


def _scale_effect(likelihood: Likelihood, p: Floats, scale: float, bias: Floats) -> Floats:
    """mean_i q_ik (z_ik − Σ_l q_il z_il), C × 1, from one pass; zero for a scale of zero.

    s z_k = ln c_k − b_k up to a constant per row, c the calibrated posteriors; entries of a block
    times the factors are c, up to a constant per row.
    """
    known = likelihood.known
    effect = np.zeros((len(p), 1))
    if scale == 0:
        return effect
    x = p[known] * likelihood.ratio
    shift = np.log(likelihood.factors) - bias[known]
    total = likelihood.total(partial(_scale_sums, x=x, shift=shift))
    effect[known, 0] = total / (likelihood.size * scale)
    return effect


def _scale_sums(likelihood: Likelihood, x: Floats, shift: Floats) -> Floats:
    """Σ_i q_ik (z_ik − mean_i), K values."""
    total = np.zeros(len(x))
    if len(x) == 2:
        between = sum(_between(block, w, x, shift) for block, w in likelihood.informative)
        return np.array([-between, between])
    for block, weights in likelihood.informative:
        adjusted = multiply_columns(block, x)
        divide_rows(adjusted, row_sums(adjusted), adjusted)
        scores = log_scores(block, TINY)
        add_columns(scores, shift)
        # Σ_i q_ik (z_ik − mean_i), without a difference for each entry.
        scores *= adjusted
        mean = row_sums(scores)
        if weights is None:
            total += scores.sum(axis=0) - np.dot(mean, adjusted)
        else:
            total += np.dot(weights, scores) - np.dot(weights * mean, adjusted)
    return total


def _between(block: Floats, weights: Floats | None, x: Floats, shift: Floats) -> float:
    """Σ_i q_i0 q_i1 (z_i1 − z_i0), which is what the sums of two classes come to."""
    first, second = at_least(block, TINY).T
    apart = second / first
    np.log(apart, out=apart)
    apart += shift[1] - shift[0]
    density = np.dot(block, x)
    both = block[:, 0] * block[:, 1]
    both /= density
    both /= density
    if weights is not None:
        both *= weights
    return float(x[0] * x[1] * np.dot(both, apart))


def _scale_effects(likelihood: Likelihood, p: Floats, calibration: Scaling) -> Floats:
    """mean_i (diag q_i − q_i q_iᵀ) diag z_i, C × C, from one pass over raw and calibrated rows."""
    known = likelihood.known
    x = p[known] * likelihood.ratio
    total = likelihood.total(partial(_scale_products, x=x, floor=calibration.floor))
    effects = np.zeros((len(p), len(p)))
    effects[np.ix_(known, known)] = total / likelihood.size
    return effects


def _scale_products(likelihood: Likelihood, x: Floats, floor: float) -> Floats:
    """Σ_i (diag q_i − q_i q_iᵀ) diag z_i, K × K."""
    total = np.zeros((len(x), len(x)))
    raw = likelihood.blocks.uncalibrated()
    for (block, weights), (rows, _) in zip(likelihood.blocks, raw, strict=True):
        adjusted = block * x
        mass = row_sums(adjusted)
        divide_rows(adjusted, np.where(mass > 0, mass, 1.0), adjusted)
        scores = log_scores(rows, floor)
        scores *= adjusted
        if weights is not None:
            scores *= weights[:, None]
        total -= np.dot(adjusted.T, scores)
        total[np.diag_indices(len(x))] += scores.sum(axis=0)
    return total
