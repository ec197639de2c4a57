"""A trained classifier as its parameters: what is kept of it, and what scores batches."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.core.arrays import AnyArray, Codes, Floats
from app.core.learners.columns import FeatureColumns
from app.core.learners.encoding import Encoding
from app.core.learners.linear import Linear
from app.core.learners.naive_bayes import GaussianBayes, MultinomialBayes
from app.core.learners.recipe import Recipe
from app.core.learners.trees import Boosting, Forest, Trees

Fitted = Linear | GaussianBayes | MultinomialBayes | Forest | Boosting
Arrays = Mapping[str, AnyArray]
AT_ONCE = 1 << 22
"""Encoded numbers that are held at once."""


@dataclass(frozen=True)
class Training:
    """What a caller sent to be trained on: an N × D table, N labels among ``classes`` classes."""

    columns: FeatureColumns
    table: Floats
    labels: Codes
    classes: int
    recipe: Recipe


@dataclass(frozen=True)
class Trained:
    """Columns, their encoding, and the fitted parameters."""

    columns: FeatureColumns
    encoding: Encoding
    fitted: Fitted

    def posteriors(self, table: Floats) -> Floats:
        """N × C for an N × D table, encoded part by part."""
        step = max(AT_ONCE // self.columns.encoded_width, 1)
        parts = [
            self.fitted.posteriors(self.encoding.apply(table[start : start + step]))
            for start in range(0, len(table), step)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def arrays(self) -> dict[str, AnyArray]:
        """Everything by name, for ``of_arrays``."""
        return {
            "columns": self.columns.array(),
            "centre": self.encoding.centre,
            "scale": self.encoding.scale,
            "fill": self.encoding.fill,
            **self.fitted.arrays(),
        }

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "Trained":
        """The classifier of ``arrays``."""
        columns = FeatureColumns.of_array(arrays["columns"])
        encoding = Encoding.whole(columns, arrays["centre"], arrays["scale"], arrays["fill"])
        return cls(columns, encoding, _fitted(arrays))


def _fitted(arrays: Arrays) -> Fitted:
    """Each kind has a name of its own among its arrays."""
    if "weights" in arrays:
        return Linear(arrays["weights"], arrays["intercepts"])
    if "log_chances" in arrays:
        return MultinomialBayes(arrays["log_priors"], arrays["log_chances"])
    if "log_levels" in arrays:
        named = (arrays[name] for name in ("log_priors", "means", "variances", "log_levels"))
        return GaussianBayes(*named)
    trees = Trees(
        arrays["children"].astype(np.intp),
        arrays["feature"].astype(np.intp),
        arrays["threshold"],
        arrays["roots"].astype(np.intp),
        int(arrays["depth"][0]),
    )
    if "outputs" in arrays:
        outputs = arrays["outputs"].astype(np.intp)
        return Boosting(trees, arrays["values"], outputs, arrays["baseline"])
    return Forest(trees, arrays["values"])


def size(arrays: Arrays) -> int:
    """Bytes of the arrays."""
    return sum(int(np.asarray(array).nbytes) for array in arrays.values())
