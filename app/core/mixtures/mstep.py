"""The maximisation step of every link, for many starts at once.

With responsibilities t_ik the step maximises Σ_ik t_ik ln φ(y_i | x_iᵀβ*_k, σ*_k²) over θ, where
β*_k = base_k + T_k θ. Letters: S starts, K components, n rows, m numbers in θ, G groups that have
a θ of their own (1 where the link is shared, otherwise K).

- σ* the source's, or free and given: weighted least squares with weights t_ik/σ_k².
- σ*_k = λσ_k with λ the last of θ: with r and u the response and λ's column after the column of
  the intercept is projected out of both, nλ² + λ S(ur) − S(r²) = 0 has one positive root: the
  exact joint maximum, also for the two numbers of M2d and M3d.

Source: Bouveyron and Jacques, §2.2; the joint maximum and the least squares re-derived.
"""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.mixtures.links import Structure

EMPTY = 1e-8
"""A component with fewer rows than this keeps what it had."""
RANK = 1e-13
"""Singular values below this share of the largest count as none."""
PIVOT = 1e-4
"""The least pivot, of columns scaled to one, for which equations are solved without their rank."""


@dataclass(frozen=True)
class MixtureParameters:
    """The numbers of S starts: ``theta`` S × G × m, ``sigmas`` and ``proportions`` S × K."""

    theta: Floats
    sigmas: Floats
    proportions: Floats

    def some(self, chosen: Codes) -> "MixtureParameters":
        """The numbers of the chosen starts alone."""
        return MixtureParameters(self.theta[chosen], self.sigmas[chosen], self.proportions[chosen])


@dataclass(frozen=True)
class MStepProblem:
    """A link on the target's rows, prepared once for all steps.

    ``features`` K × n × m and ``offsets`` K × n: what θ multiplies and what it does not.
    ``products`` K × n × (m + 1)²: outer products of [features, y − offset], whose weighted sums
    are the normal equations. ``floor``: the least σ* that counts as a fit, in y's units.
    """

    structure: Structure
    y: Floats
    features: Floats
    offsets: Floats
    products: Floats
    floor: float

    def means(self, theta: Floats) -> Floats:
        """S × n × K."""
        full = np.broadcast_to(theta, (len(theta), len(self.offsets), theta.shape[2]))
        fitted = np.matmul(self.features, full[..., None])[..., 0] + self.offsets
        return np.asarray(np.swapaxes(fitted, 1, 2))

    def coefficients(self, theta: Floats) -> Floats:
        """S × K × q."""
        full = np.broadcast_to(theta, (len(theta), len(self.offsets), theta.shape[2]))
        return np.asarray(np.matmul(self.structure.maps, full[..., None])[..., 0]) + np.asarray(
            self.structure.base
        )

    @property
    def least_slope(self) -> Floats:
        """The least λ of each group, G, where λ scales σ."""
        sigmas = self.structure.sigmas
        largest = sigmas.max(keepdims=True) if self.structure.link.shared else sigmas
        return np.asarray(self.floor / largest)


def problem(structure: Structure, rows: Floats, y: Floats, floor: float) -> MStepProblem:
    """Prepare ``structure`` for the target's ``rows`` n × q and ``y`` n."""
    features = np.matmul(rows, structure.maps)
    offsets = structure.base @ rows.T
    joined = np.concatenate([features, (y - offsets)[..., None]], axis=-1)
    products = joined[..., :, None] * joined[..., None, :]
    count, size, width = joined.shape
    return MStepProblem(
        structure, y, features, offsets, products.reshape(count, size, width * width), floor
    )


def maximise(problem: MStepProblem, t: Floats, at: MixtureParameters) -> MixtureParameters:
    """One M-step: ``t`` S × n × K, zero for rows that are left out; ``at`` the state it leaves."""
    link = problem.structure.link
    sizes = t.sum(axis=1)
    theta = _theta(problem, t, sizes, at)
    sigmas = at.sigmas
    if link.sigma == "scaled":
        sigmas = theta[..., -1] * problem.structure.sigmas
    if link.sigma == "free":
        sigmas = _free_sigmas(problem, t, sizes, theta, at.sigmas)
    proportions = at.proportions
    if link.proportions:
        proportions = sizes / sizes.sum(axis=1, keepdims=True)
    return MixtureParameters(theta, sigmas, proportions)


def _theta(problem: MStepProblem, t: Floats, sizes: Floats, at: MixtureParameters) -> Floats:
    link, width = problem.structure.link, problem.features.shape[2] + 1
    if width == 1:
        return at.theta
    reference = at.sigmas if link.sigma == "free" else problem.structure.sigmas
    weights = np.moveaxis(t / (reference * reference)[..., None, :], 2, 0)
    sums = np.matmul(weights, problem.products)  # K × S × (m + 1)²
    if link.shared:
        sums, sizes = sums.sum(axis=0, keepdims=True), sizes.sum(axis=1, keepdims=True)
    equations = np.swapaxes(sums, 0, 1).reshape(len(t), -1, width, width)
    if link.sigma == "scaled":
        theta = _with_its_sigma(equations, np.maximum(sizes, EMPTY), problem.least_slope)
    else:
        theta = _least_squares(equations)
    return np.where((sizes > EMPTY)[..., None], theta, at.theta)


def _with_its_sigma(equations: Floats, sizes: Floats, least: Floats) -> Floats:
    """θ = (intercept's number if any, λ): the positive root, not below ``least``."""
    squares, cross = equations[..., -1, -1], equations[..., -2, -1]
    nuisance = equations.shape[-1] == 3
    if nuisance:
        own = equations[..., 0, 0]
        per = np.where(own > 0, 1 / np.where(own > 0, own, 1), 0)
        level, tilt = equations[..., 0, 2] * per, equations[..., 0, 1] * per
        squares = squares - level * equations[..., 0, 2]
        cross = cross - level * equations[..., 0, 1]
    squares = np.maximum(squares, 0)
    root = np.sqrt(cross * cross + 4 * sizes * squares)
    below = np.maximum(cross + root, np.finfo(float).tiny)
    slope = np.where(cross > 0, 2 * squares / below, (root - cross) / (2 * sizes))
    slope = np.maximum(slope, least)
    return np.stack([level - tilt * slope, slope] if nuisance else [slope], axis=-1)


def _least_squares(equations: Floats) -> Floats:
    """Solve the normal equations, columns scaled to one; the shortest solution without rank."""
    own = np.diagonal(equations, axis1=-2, axis2=-1)[..., :-1]
    scale = np.where(own > 0, 1 / np.sqrt(np.where(own > 0, own, 1)), 0)
    matrix = equations[..., :-1, :-1] * scale[..., :, None] * scale[..., None, :]
    right = equations[..., :-1, -1] * scale
    if matrix.shape[-1] == 1:
        return np.asarray(right * scale)
    if _well_conditioned(matrix):
        return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0] * scale)
    inverse = np.linalg.pinv(matrix, rcond=RANK, hermitian=True)
    return np.asarray(np.matmul(inverse, right[..., None])[..., 0] * scale)


def _well_conditioned(matrices: Floats) -> bool:
    """Whether all have full rank by a margin, so that the quick way is exact enough."""
    try:
        roots = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    return bool(np.diagonal(roots, axis1=-2, axis2=-1).min(initial=1) > PIVOT)


def _free_sigmas(
    problem: MStepProblem, t: Floats, sizes: Floats, theta: Floats, at: Floats
) -> Floats:
    residuals = problem.y[:, None] - problem.means(theta)
    squares = (t * residuals * residuals).sum(axis=1)
    sigmas = np.sqrt(squares / np.maximum(sizes, EMPTY))
    return np.where(sizes > EMPTY, np.maximum(sigmas, problem.floor), at)
