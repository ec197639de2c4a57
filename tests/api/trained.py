"""Trainings that many tests register."""

from typing import Any

import httpx
import numpy as np

from tests.api.sources import CLASSES

NAMES = ["amount", "country"]
COUNTRIES = ["BE", "NL", "FR"]
THREE = ["low", "middle", "high"]


def rows(count: int, classes: list[str], seed: int = 0) -> tuple[list[list[Any]], list[str]]:
    """Features and labels: amounts that grow with the class, countries that do not."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(classes)
    amounts = rng.normal(labels * 1.5, 1.0)
    countries = rng.integers(0, 3, count)
    features = [[float(a), COUNTRIES[c]] for a, c in zip(amounts, countries, strict=True)]
    return features, [classes[k] for k in labels]


def training(
    learner: str = "logistic-regression", classes: list[str] = CLASSES, count: int = 60, **more: Any
) -> dict[str, Any]:
    """A training of ``count`` rows."""
    features, labels = rows(count, classes)
    return {
        "features": features,
        "labels": labels,
        "feature_names": NAMES,
        "categorical": ["country"],
        "learner": learner,
        **more,
    }


def train(client: httpx.Client, name: str, asked: dict[str, Any], **model: Any) -> dict[str, Any]:
    """A model trained in the service; its version's page."""
    content = {"name": name, "classes": CLASSES, "source": {"training": asked}, **model}
    answer = client.post("/v1/models", json=content)
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = answer.json()["version"]
    return shown


def address(shown: dict[str, Any]) -> str:
    """Of a version's page."""
    return f"/v1/models/{shown['model']}/versions/{shown['version']}"


def codes(answer: httpx.Response) -> list[str]:
    """The warnings of an answer."""
    return [warning["code"] for warning in answer.json()["warnings"]]
