"""Long series made shorter, so that a chart of them is small and hides nothing that alarmed."""

import numpy as np

from app.core.arrays import Floats
from models_store.series import Columns


def thinned(columns: Columns, most: int) -> tuple[Columns, Floats]:
    """At most ``most`` points, each of some windows in a row; and how many stand behind each.

    Estimates and sources are means by size, ends and p-values the outermost, sizes sums, and a
    point is detected if one of its windows is.
    """
    count = len(columns.start)
    if count <= most:
        return columns, np.ones(count)
    first = np.arange(0, count, -(-count // most))
    said = ~np.isnan(columns.shares[:, 0, 0])
    weight = np.where(said, columns.size, 0).astype(np.float64)
    total = np.add.reduceat(weight, first)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = _sums(np.nan_to_num(columns.shares) * weight[:, None, None], first)
        means /= total[:, None, None]
    shares = means
    shares[:, :, 1] = np.fmin.reduceat(columns.shares[:, :, 1], first)
    shares[:, :, 2] = np.fmax.reduceat(columns.shares[:, :, 2], first)
    thin = Columns(
        columns.segment,
        columns.start[first],
        np.maximum.reduceat(columns.end, first),
        np.add.reduceat(columns.size, first),
        np.fmax.reduceat(columns.version, first),
        np.fmin.reduceat(columns.p_value, first),
        np.fmin.reduceat(columns.level, first),
        np.fmax.reduceat(columns.detected, first),
        shares,
    )
    return thin, np.diff(np.append(first, count)).astype(np.float64)


def _sums(values: Floats, first: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Floats:
    return np.asarray(np.add.reduceat(values, first))
