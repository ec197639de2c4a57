"""What is registered of a classifier."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from priorshift_client.batches import named_cells, named_matrix
from priorshift_client.rows import labels, listed

Numbers = Mapping[str, float]
TRAINING_SECONDS = 360.0
"""More than the service gives a training and its wait for a turn."""


@dataclass(frozen=True)
class Training:
    """Labelled rows of features for the service to train on; None and NaN are missing values.

    ``learner``: logistic-regression, linear-svm, naive-bayes, random-forest, gradient-boosting.
    """

    features: Any = field(repr=False)
    labels: Any = field(repr=False)
    learner: str
    feature_names: Sequence[str] | None = None
    categorical: Sequence[str] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    folds: int = 5
    missing: str = "refuse"
    seed: int = 0

    def content(self) -> dict[str, Any]:
        """For JSON."""
        rows, names = named_cells(self.features, self.feature_names)
        return {
            "features": rows,
            "labels": labels(self.labels),
            "learner": self.learner,
            **({} if names is None else {"feature_names": names}),
            "categorical": list(self.categorical),
            "parameters": dict(self.parameters),
            "folds": self.folds,
            "missing": self.missing,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Source:
    """What is known of a classifier, or how to train one.

    ``labels`` and ``posteriors`` are a validation set: rows scored by a model that did not see
    them; ``columns`` names the columns of an array of posteriors, and chooses those of a frame. The
    confusion matrix has a row per actual class, columns as predicted, in counts.
    """

    labels: Any = field(default=None, repr=False)
    posteriors: Any = field(default=None, repr=False)
    columns: Iterable[str] | None = None
    class_counts: Numbers | None = None
    priors: Numbers | None = None
    confusion_matrix: Any = None
    outputs: Sequence[str] | None = None
    training: Training | None = None
    calibration: str | None = None
    metadata: Mapping[str, Any] | None = None

    @property
    def patience(self) -> float:
        """Seconds that registering may take."""
        return 0.0 if self.training is None else TRAINING_SECONDS

    def content(self) -> dict[str, Any]:
        """For JSON, without what was not given."""
        content = {
            "class_counts": self.class_counts,
            "priors": self.priors,
            "confusion_matrix": self._confusion(),
            "outputs": None if self.outputs is None else list(self.outputs),
            "validation": self._validation(),
            "training": None if self.training is None else self.training.content(),
            "calibration": self.calibration,
            "metadata": self.metadata,
        }
        return {name: value for name, value in content.items() if value is not None}

    def _confusion(self) -> list[list[float]] | None:
        if self.confusion_matrix is None:
            return None
        counts, _ = named_matrix(self.confusion_matrix, "/source/confusion_matrix")
        return listed(counts, "/source/confusion_matrix")

    def _validation(self) -> dict[str, Any] | None:
        if self.posteriors is None and self.labels is None:
            return None
        if self.posteriors is None or self.labels is None:
            raise TypeError("a validation set is labels and posteriors, both")
        at = "/source/validation/posteriors"
        rows, names = named_matrix(self.posteriors, at, self.columns)
        content = {"labels": labels(self.labels), "posteriors": listed(rows, at)}
        return content if names is None else {**content, "columns": names}
