"""Priors for the target's regressions, centred at the source's, and their conjugate updates.

β*_k | σ²_k ~ N(β_k, σ²_k A), σ²_k ~ IG(shape, scale_k), π* ~ Dirichlet(κπ). With β integrated out
σ²_k | rows of k ~ IG(shape + n_k/2, scale_k + ½(r'r − r'x V x'r)) for r = y − xβ_k and
V = (A⁻¹ + x'x)⁻¹, which needs no inverse of x'x and holds for a component without rows.

Source: Bouveyron and Jacques, §3, with the conditional of σ² derived anew.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.mixtures.design import numbers
from app.core.mixtures.mixture import RegressionMixture

SPREAD = 1.0
SHAPE = 2.0
KAPPA = 10.0


@dataclass(frozen=True)
class Priors:
    """``precision`` q × q is A⁻¹, ``root`` q × q has root rootᵀ = A; ``scales`` K in y's units².

    ``shape`` of the inverse gamma; ``concentration`` K is κπ, in rows.
    """

    precision: Floats
    root: Floats
    shape: float
    scales: Floats
    concentration: Floats


def priors(
    source: RegressionMixture,
    spread: ArrayLike = SPREAD,
    shape: float = SHAPE,
    scale: ArrayLike | None = None,
    kappa: float = KAPPA,
) -> Priors:
    """Priors around ``source``.

    ``spread`` is A: a number or q numbers for its diagonal, or q × q; it depends on the units of
    the covariates, so standardise these or send variances. ``scale``: one for each component or
    one for all, in y's units squared; by default (shape − 1) σ_k², so that the prior mean is the
    source's variance (shape above 1). ``kappa``: of how many rows' weight the source's proportions
    are. ``InvalidInput`` for anything that is no such number.
    """
    terms, count = source.coefficients.shape[1], source.components
    matrix = numbers("/options/spread", spread)
    if matrix.ndim < 2:
        if matrix.ndim == 1 and len(matrix) != terms:
            raise InvalidInput.at("/options/spread", f"send one number, {terms}, or a matrix")
        matrix = np.diag(np.broadcast_to(matrix, terms))
    if matrix.shape != (terms, terms) or not np.allclose(matrix, matrix.T):
        raise InvalidInput.at("/options/spread", f"send a symmetric {terms} × {terms} matrix")
    try:
        root = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise InvalidInput.at("/options/spread", "send a positive definite matrix") from None
    if not 0 < shape < np.inf:
        raise InvalidInput.at("/options/shape", "send a positive number")
    if not 0 < kappa < np.inf:
        raise InvalidInput.at("/options/kappa", "send a positive number")
    if scale is None:
        scale = max(shape - 1, 0.5) * source.sigmas**2
    scales = numbers("/options/scale", scale)
    if scales.shape not in ((), (count,)) or not ((scales > 0) & np.isfinite(scales)).all():
        raise InvalidInput.at("/options/scale", f"send one positive number or {count}")
    return Priors(
        np.asarray(np.linalg.inv(matrix), dtype=np.float64),
        np.asarray(root, dtype=np.float64),
        shape,
        np.array(np.broadcast_to(scales, count)),
        kappa * source.proportions,
    )


@dataclass(frozen=True)
class Conditional:
    """Given who belongs where: σ² ~ IG(``shape``, ``scale``), C × K.

    ``inverse_root`` C × K × q × q is L⁻¹ for L Lᵀ = A⁻¹ + x'x, and ``half`` = L⁻¹ x'r, so that
    L⁻ᵀ half is the mean of β − β_source and L⁻ᵀ L⁻¹ σ² its covariance.
    """

    shape: Floats
    scale: Floats
    inverse_root: Floats
    half: Floats

    def shift(self, noise: Floats | float) -> Floats:
        """L⁻ᵀ(half + noise): the mean for 0, a draw for σ times standard normals."""
        return np.asarray(
            np.matmul(np.swapaxes(self.inverse_root, -1, -2), (self.half + noise)[..., None])[
                ..., 0
            ]
        )


def sums(source: RegressionMixture, rows: Floats, y: Floats) -> Floats:
    """K × n × (1 + q + q²): r², x r and x xᵀ of every row, r its residual from the source."""
    residuals = (y[:, None] - rows @ source.coefficients.T).T[..., None]
    squares = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    repeated = np.broadcast_to(squares, (source.components, *squares.shape))
    return np.concatenate([residuals**2, residuals * rows, repeated], axis=-1)


def conditional(prior: Priors, products: Floats, members: Floats) -> Conditional:
    """``products`` from ``sums``; ``members`` C × n × K, 1 where a row belongs to a component."""
    totals = np.swapaxes(np.matmul(np.moveaxis(members, 2, 0), products), 0, 1)
    terms = len(prior.precision)
    moments = totals[..., 1 : terms + 1]
    squares = totals[..., terms + 1 :].reshape(*totals.shape[:2], terms, terms)
    inverse_root = np.linalg.inv(np.linalg.cholesky(prior.precision + squares))
    half = np.matmul(inverse_root, moments[..., None])[..., 0]
    explained = np.minimum((half * half).sum(axis=-1), totals[..., 0])
    return Conditional(
        prior.shape + 0.5 * members.sum(axis=1),
        prior.scales + 0.5 * (totals[..., 0] - explained),
        inverse_root,
        half,
    )
