"""A fitted scikit-learn classifier whose posteriors are adjusted; scikit-learn is not imported."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from priorshift_client.client import Client
from priorshift_client.names import place_of
from priorshift_client.results import Posteriors


class Classifier(Protocol):
    """What a fitted classifier has."""

    classes_: Any

    def predict_proba(self, X: Any) -> Any:
        """Posteriors, a column for each of ``classes_``."""
        ...


class Adjusted:
    """A classifier whose posteriors fit the batch that they come in.

    Each call adjusts its rows to the class shares of these very rows, or to ``target_priors``: give
    it whole batches, not single rows. Classes are matched by name, ``str`` of each of ``classes_``.
    """

    def __init__(
        self,
        estimator: Classifier,
        client: Client,
        model: str,
        version: int | str,
        method: str,
        target_priors: Mapping[str, float] | None,
    ) -> None:
        self.estimator = estimator
        self._client = client
        self._model, self._version, self._method = model, version, method
        self._target = target_priors
        self._names = [str(name) for name in np.asarray(estimator.classes_).tolist()]
        if len(set(self._names)) < len(self._names):
            raise ValueError(f"classes have the same name as text: {self._names}")

    @property
    def classes_(self) -> Any:
        """The estimator's."""
        return self.estimator.classes_

    def adjust(self, X: Any) -> Posteriors:
        """The answer of the service for the estimator's posteriors, in the model's order."""
        return self._client.posteriors(
            self._model,
            np.asarray(self.estimator.predict_proba(X)),
            self._version,
            self._method,
            target_priors=self._target,
            columns=self._names,
        )

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Adjusted posteriors, a column for each of ``classes_``."""
        adjusted = self.adjust(X)
        columns = adjusted.columns or self._client.versions.get(self._model, self._version).classes
        return adjusted.array[:, [place_of(name, columns) for name in self._names]]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row; the first on ties."""
        chosen: NDArray[Any] = np.asarray(self.classes_)[self.predict_proba(X).argmax(axis=1)]
        return chosen


def as_sklearn(
    estimator: Classifier,
    client: Client,
    model: str,
    version: int | str = "latest",
    *,
    method: str = "auto",
    target_priors: Mapping[str, float] | None = None,
) -> Adjusted:
    """Wrap a fitted classifier: ``predict_proba`` of a batch comes back adjusted."""
    return Adjusted(estimator, client, model, version, method, target_priors)
