"""A service with something to look at: two classifiers, a day of batches each, and a drift."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

START = datetime(2026, 1, 30, tzinfo=UTC)
HOURS = 24
WATCHED = 26
"""Hours of a monitor,"""
ROWS = 600
"""and rows in each."""
PATIENCE_SECONDS = 600.0
COUNTRIES = ("BE", "NL")
Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class World:
    """Classes as normal distributions in the plane: their scores are exact posteriors."""

    name: str
    description: str
    classes: tuple[str, ...]
    priors: Floats
    centres: Floats

    def draw(
        self, rng: np.random.Generator, rows: int, shares: Floats, heat: float = 1.0
    ) -> tuple[Codes, Floats]:
        """Labels, and posteriors at the source priors; ``heat`` other than 1 miscalibrates them."""
        labels = rng.choice(len(shares), rows, p=shares)
        points = rng.normal(self.centres[labels])
        logits = points @ self.centres.T - 0.5 * (self.centres**2).sum(axis=1)
        posteriors: Floats = softmax(heat * logits + np.log(self.priors), axis=1)
        return labels, posteriors


CARDS = World(
    "cards",
    "card payments, scored by the nightly model",
    ("legit", "fraud"),
    np.array([0.99, 0.01]),
    np.array([[0.0, 0.0], [2.6, 1.0]]),
)
TICKETS = World(
    "tickets",
    "helpdesk tickets by topic",
    ("billing", "login", "delivery", "outage", "other"),
    np.array([0.32, 0.25, 0.22, 0.03, 0.18]),
    np.array([[2.2, 0.0], [-1.8, 1.4], [0.0, -2.3], [-2.4, -2.0], [0.6, 2.6]]),
)


def fill(client: httpx.Client) -> dict[str, str]:
    """Register and post; the last estimate of each model, by the model's name."""
    last = {}
    for number, world in enumerate((CARDS, TICKETS)):
        rng = np.random.default_rng(number)
        _register(client, world, rng)
        for hour in range(HOURS):
            last[world.name] = _batch(client, world, rng, hour)
    _watch(client)
    _post(client, "/v1/models", {"name": "churn", "classes": ["stays", "leaves"]})
    counted = {
        "class_counts": {"spam": 400, "ham": 600},
        "confusion_matrix": [[360, 40], [30, 570]],
    }
    model = {"name": "mail", "classes": ["spam", "ham"], "description": "counts only"}
    _post(client, "/v1/models", {**model, "source": counted})
    counts = {"predicted_counts": {"spam": 21, "ham": 39}}
    last["mail"] = _post(client, "/v1/models/mail/versions/1/estimates", counts)["id"]
    return last


def batch(world: World, rng: np.random.Generator, late: float, rows: int) -> Floats:
    """Scores of a population in which the rarest class has grown by ``late``, 0 to 1."""
    rare = int(world.priors.argmin())
    shares = world.priors.copy()
    shares[rare] *= 1 + 2.0 * late
    return world.draw(rng, rows, shares / shares.sum(), heat=1.15)[1]


def _register(client: httpx.Client, world: World, rng: np.random.Generator) -> None:
    labels, posteriors = world.draw(rng, 4000, world.priors, heat=1.15)
    validation = {
        "labels": [world.classes[k] for k in labels],
        "posteriors": posteriors.round(9).tolist(),
        "columns": world.classes,
    }
    source = {"validation": validation, "metadata": {"commit": "4e1c0ffee"}}
    model = {"name": world.name, "classes": world.classes, "description": world.description}
    _post(client, "/v1/models", {**model, "source": source})
    client.put(f"/v1/models/{world.name}/aliases/champion", json={"version": 1}).raise_for_status()


def _batch(client: httpx.Client, world: World, rng: np.random.Generator, hour: int) -> str:
    late = max(0.0, (hour - 14) / (HOURS - 15))
    content = {
        "posteriors": batch(world, rng, late, 1500).round(9).tolist(),
        "columns": world.classes,
        "method": "em",
        "observed_at": (START + timedelta(hours=hour)).isoformat(),
        "segment": {"country": COUNTRIES[hour % len(COUNTRIES)]},
        "include": ["trace", "histogram"],
    }
    address = f"/v1/models/{world.name}/versions/1/estimates"
    estimate: str = _post(client, address, content)["id"]
    return estimate


def _watch(client: httpx.Client) -> None:
    """Two monitors: one by country, in one of which fraud rises; one that waits for its rows."""
    rng = np.random.default_rng(7)
    alert = {"false_alarms": 1, "per": "P30D"}
    monitor = {"model": "cards", "window": {"duration": "PT1H"}, "segment_by": "country"}
    about = {"description": "payments by the hour and country", "alert": alert}
    _post(client, "/v1/monitors", {"name": "payments", **monitor, **about})
    quiet = {"name": "refunds", "model": "cards", "window": {"rows": 1000}, "alert": alert}
    _post(client, "/v1/monitors", quiet)
    for hour in range(WATCHED):
        for country in COUNTRIES:
            late = max(0.0, (hour - 16) / 4) if country == COUNTRIES[0] else 0.0
            content = {
                "posteriors": batch(CARDS, rng, late, ROWS).round(9).tolist(),
                "columns": CARDS.classes,
                "observed_at": (START + timedelta(hours=hour, minutes=20)).isoformat(),
                "segment": {"country": country},
            }
            _post(client, "/v1/monitors/payments/observations", content)
    deadline = time.monotonic() + PATIENCE_SECONDS
    # The last of each country stays open: later rows of its hour may come.
    target = len(COUNTRIES) * (WATCHED - 1)
    while client.get("/v1/monitors/payments/series").json()["count"] < target:
        assert time.monotonic() < deadline, "the windows did not close"
        time.sleep(0.05)


def _post(client: httpx.Client, address: str, content: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(address, json=content)
    assert answer.status_code < 300, answer.text
    result: dict[str, Any] = answer.json()
    return result
