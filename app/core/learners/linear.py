"""Linear scores through a softmax: logistic regression, and linear support vector machines."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from app.core.arrays import Floats


@dataclass(frozen=True)
class Linear:
    """P(class k | x) ∝ exp(weights_k · x + intercepts_k); weights C × P, intercepts C.

    Two classes are coded with the first at zero, so that the second's score is the log-odds.
    """

    weights: Floats
    intercepts: Floats

    def posteriors(self, encoded: Floats) -> Floats:
        """N × C for an encoded N × P table."""
        scores = np.dot(encoded, self.weights.T) + self.intercepts
        return np.asarray(softmax(scores, axis=1), dtype=np.float64)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its parameters by name."""
        return {"weights": self.weights, "intercepts": self.intercepts}
