"""The design matrix: what a row's covariates become before they meet the coefficients."""

import numpy as np
from numpy.typing import ArrayLike

from app.core.arrays import Floats
from app.core.errors import InvalidInput

DEGREES = 10
LARGEST = 1e100
"""Numbers beyond this are refused, since their squares' products would overflow."""


def numbers(pointer: str, values: ArrayLike) -> Floats:
    """An array of floats; ``InvalidInput`` for words, or for lists of different lengths."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput.at(pointer, "send numbers, in lists of the same length") from None


def design(x: ArrayLike, degree: int = 1) -> Floats:
    """Rows with an intercept, n × q.

    ``x`` is n × p (or n numbers, p = 1), in whatever units the caller has. ``degree`` d > 1 asks
    for the powers x, x², …, x^d of one covariate: q = d + 1; otherwise q = p + 1.

    ``InvalidInput`` where ``x`` is no table, is not finite, or has several covariates and a degree.
    """
    rows = numbers("/x", x)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2:
        raise InvalidInput.at("/x", "send a table: one list of p numbers for each row")
    _finite("/x", rows)
    if not 1 <= degree <= DEGREES:
        raise InvalidInput.at("/degree", f"send a degree of 1 to {DEGREES}")
    if degree > 1:
        if rows.shape[1] != 1:
            raise InvalidInput.at("/degree", "powers need one covariate; send degree 1 otherwise")
        with np.errstate(over="ignore"):
            rows = rows ** np.arange(1, degree + 1)
        _finite("/x", rows)
    return np.column_stack([np.ones(len(rows)), rows])


def response(y: ArrayLike, rows: int) -> Floats:
    """The response, n numbers; ``InvalidInput`` where they are not finite or not ``rows``."""
    values = numbers("/y", y)
    if values.shape != (rows,):
        raise InvalidInput.at("/y", f"send one number for each of the {rows} rows of x")
    _finite("/y", values)
    return values


def _finite(pointer: str, values: Floats) -> None:
    small = np.abs(values) <= LARGEST  # not so for a NaN either
    wrong = ~small.all(axis=tuple(range(1, values.ndim)))
    if wrong.any():
        message = f"send finite numbers, and powers of them below {LARGEST:g}"
        raise InvalidInput.at(pointer, message, row=int(np.argmax(wrong)))
