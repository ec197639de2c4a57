"""The design matrix: what a row's covariates become before they meet the coefficients."""

import numpy as np
from numpy.typing import ArrayLike

from app.core.errors import InvalidInput
from app.core.prevalence.arrays import Floats


def design(x: ArrayLike, degree: int = 1) -> Floats:
    """Rows with an intercept, n × q.

    ``x`` is n × p (or n numbers, p = 1), in whatever units the caller has. ``degree`` d > 1 asks
    for the powers x, x², …, x^d of one covariate: q = d + 1; otherwise q = p + 1.

    ``InvalidInput`` where ``x`` is no table, is not finite, or has several covariates and a degree.
    """
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2:
        raise InvalidInput.at("/x", "send a table: one list of p numbers for each row")
    _finite("/x", rows)
    if degree < 1:
        raise InvalidInput.at("/degree", "send a degree of 1 or more")
    if degree > 1:
        if rows.shape[1] != 1:
            raise InvalidInput.at("/degree", "powers need one covariate; send degree 1 otherwise")
        rows = rows ** np.arange(1, degree + 1)
        _finite("/x", rows)
    return np.column_stack([np.ones(len(rows)), rows])


def response(y: ArrayLike, rows: int) -> Floats:
    """The response, n numbers; ``InvalidInput`` where they are not finite or not ``rows``."""
    values = np.asarray(y, dtype=np.float64)
    if values.shape != (rows,):
        raise InvalidInput.at("/y", f"send one number for each of the {rows} rows of x")
    _finite("/y", values)
    return values


def _finite(pointer: str, values: Floats) -> None:
    wrong = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if wrong.any():
        raise InvalidInput.at(pointer, "send finite numbers", row=int(np.argmax(wrong)))
