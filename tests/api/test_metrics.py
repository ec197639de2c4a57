"""What is scraped is what was asked."""

from uuid import uuid4

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app import metrics
from app.metrics import Metrics
from tests.api.sources import COUNTED, register

BATCH = {"posteriors": [[0.9, 0.1], [0.2, 0.8]]}
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    """Every sample by its name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(client: httpx.Client) -> Samples:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return samples(answer.text)


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((f"priorshift_{name}", frozenset(labels.items())), 0.0)


@pytest.fixture
def model(lasting: httpx.Client) -> str:
    name = f"m{uuid4().hex}"
    register(lasting, name, COUNTED)
    return name


def test_estimates_and_requests_are_counted(lasting: httpx.Client, model: str) -> None:
    route = "/v1/models/{name}/versions/{version}/estimates"
    asked = {"method": "POST", "route": route}
    before = scraped(lasting)
    for method in ("mle", "mle", "em"):
        lasting.post(f"/v1/models/{model}/versions/1/estimates", json={**BATCH, "method": method})
    lasting.post(f"/v1/models/{model}/versions/1/estimates", json={"posteriors": [[2, 0]]})
    lasting.post("/v1/models/none/versions/1/estimates", json=BATCH)
    found = scraped(lasting)
    own = {"model": model, "version": "1"}
    assert value(found, "estimates_total", **own, method="mle") == 2
    assert value(found, "estimates_total", **own, method="em") == 1
    name = "http_request_duration_seconds_count"
    for status, count in (("201", 3), ("422", 1), ("404", 1)):
        labels = {**asked, "status": status}
        assert value(found, name, **labels) - value(before, name, **labels) == count
    durations = "estimate_duration_seconds_count"
    grown = value(found, durations, method="mle") - value(before, durations, method="mle")
    assert grown == 2


def test_what_is_under_way(lasting: httpx.Client) -> None:
    found = scraped(lasting)
    for lane in ("small", "large", "inflating"):
        assert value(found, "queue_depth", lane=lane) == 0
        assert value(found, "slots_in_use", lane=lane) == 0
    assert value(found, "held_bytes") == 0


def test_labels_are_bounded(monkeypatch: pytest.MonkeyPatch, lasting: httpx.Client) -> None:
    lasting.request("BREW", "/livez")
    for k in range(30):
        lasting.get(f"/nowhere/{k}")
    assert not [key for key in scraped(lasting) if "nowhere" in str(key) or "BREW" in str(key)]
    monkeypatch.setattr(metrics, "MOST_MODELS", 3)
    counted = Metrics()
    for k in range(10):
        with counted.estimating(f"m{k}", 1) as method:
            method.append("mle")
    found = samples(counted.page().decode())
    assert value(found, "estimates_total", model="m2", version="1", method="mle") == 1
    other = {"model": metrics.OTHER, "version": metrics.OTHER}
    assert value(found, "estimates_total", **other, method="mle") == 7


def test_an_estimate_that_fails_is_not_counted() -> None:
    counted = Metrics()
    with pytest.raises(ValueError, match="no"), counted.estimating("m", 1):
        raise ValueError("no")
    assert value(samples(counted.page().decode()), "estimates_total") == 0


def test_nothing_of_a_batch_is_told(lasting: httpx.Client) -> None:
    assert lasting.get("/metrics", params={"x": "1"}).status_code == 422
    answer = lasting.get("/metrics")
    assert len(answer.content) < 200_000
