"""The mean of many rows and their spread about it: all that an averaging method asks of them."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import AnyFloats, Floats


@dataclass(frozen=True)
class RowMean:
    """The mean of some rows, and their spread.

    ``size``: how many there are, or stand behind them.
    ``mean``: C.
    ``products``: Σ (x − mean)(x − mean)ᵀ, C × C.
    """

    size: float
    mean: Floats
    products: Floats

    @classmethod
    def of(cls, rows: AnyFloats, weights: Floats | None = None) -> "RowMean":
        """Of N × C rows, each counted by its weight; of many in single precision as well."""
        if weights is None:
            mean = rows.mean(axis=0, dtype=np.float64)
            centred = rows - mean
            return cls(float(len(rows)), mean, np.dot(centred.T, centred))
        size = float(weights.sum())
        mean = np.dot(weights, rows) / size
        centred = rows - mean
        return cls(size, mean, np.dot((centred * weights[:, None]).T, centred))

    @property
    def variances(self) -> Floats:
        """Of the C columns, unbiased; for two rows and more."""
        variances: Floats = self.products.diagonal() / (self.size - 1.0)
        return variances
