"""Sources that many tests register."""

from typing import Any

import httpx
import numpy as np
from scipy.special import expit

from app.core.arrays import Codes, Floats

CLASSES = ["legit", "fraud"]
COUNTED = {
    "class_counts": {"legit": 990, "fraud": 110},
    "confusion_matrix": [[900, 90], [10, 100]],
}


def scores(
    rng: np.random.Generator, rows: int, share: float, distance: float = 2.0
) -> tuple[Codes, Floats]:
    """Labels and posteriors (calibrated at a share of .2) of two normal classes."""
    labels = (rng.random(rows) < share).astype(np.intp)
    x = rng.normal(labels * distance, 1.0)
    positive = expit(distance * x - distance**2 / 2 + np.log(0.2 / 0.8))
    return labels, np.column_stack([1 - positive, positive])


def validation(rows: int = 400, seed: int = 1) -> dict[str, Any]:
    """A validation set of a share of .2."""
    labels, posteriors = scores(np.random.default_rng(seed), rows, 0.2)
    return {"labels": [CLASSES[k] for k in labels], "posteriors": posteriors.tolist()}


def register(client: httpx.Client, name: str, source: dict[str, Any], **model: Any) -> str:
    """A model with one version; the version's address."""
    content = {"name": name, "classes": CLASSES, "source": source, **model}
    answer = client.post("/v1/models", json=content)
    assert answer.status_code == 201, answer.text
    return f"/v1/models/{name}/versions/1"
