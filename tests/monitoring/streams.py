"""A monitor of a two-class model, and its series once it has caught up."""

import time
from typing import Any

import httpx

from app.core.arrays import Floats
from tests.api.sources import register as register_source
from tests.api.sources import scores, validation
from tests.patience import Deadline

SHARE = 0.2
rows = scores


def register(client: httpx.Client, name: str = "cards", n: int = 4000) -> None:
    """The model with a validation set."""
    register_source(client, name, {"validation": validation(n)})


def make(client: httpx.Client, **given: Any) -> dict[str, Any]:
    """A monitor of the model."""
    body = {"name": "m", "model": "cards", "window": {"rows": 100}, **given}
    answer = client.post("/v1/monitors", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def post(client: httpx.Client, posteriors: Floats, **more: Any) -> dict[str, Any]:
    """Rows to the monitor."""
    body = {"posteriors": posteriors.tolist(), **more}
    answer = client.post("/v1/monitors/m/observations", json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


def series(client: httpx.Client, count: int, **query: Any) -> dict[str, Any]:
    """The series, once it has this many windows."""
    deadline = Deadline(30)
    while True:
        answer = client.get("/v1/monitors/m/series", params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        if found["count"] >= count:
            assert found["count"] == count
            return found
        assert not deadline.over(), found
        time.sleep(0.02)
