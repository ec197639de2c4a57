import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from clients.python.tests.servers import scripted
from priorshift_client import Client, Estimate, Posteriors, Prevalence, UnexpectedAnswer, Version
from priorshift_client.reading import read

ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])


@pytest.fixture(scope="module")
def estimate(base: str, cards: str) -> dict[str, Any]:
    """An estimate as the service sends it."""
    address = f"{base}/v1/models/{cards}/versions/1/estimates"
    asked = {"posteriors": ROWS.tolist(), "include": ["posteriors"]}
    content: dict[str, Any] = httpx.post(address, json=asked).json()
    return content


def with_news(value: Any) -> Any:
    """The same with a field in every object that nobody knows."""
    if isinstance(value, dict):
        return {name: with_news(item) for name, item in value.items()} | {"new-field": {"a": [1]}}
    return [with_news(item) for item in value] if isinstance(value, list) else value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from objects(item)


class TestUnknownFields:
    def test_in_an_estimate(self, estimate: dict[str, Any]) -> None:
        estimate = {k: v for k, v in estimate.items() if k != "segment"}  # any name is known there
        news = with_news(estimate) | {"segment": {}}
        for mapping in (news["adjustment"]["offsets"], news["shift"].get("mean_gap") or {}):
            del mapping["new-field"]
        found = read(Estimate, news)
        plain = read(Estimate, {**estimate, "segment": {}})
        assert found.prevalence == plain.prevalence
        assert (found.shift, found.interval, found.diagnostics, found.warnings) == (
            plain.shift,
            plain.interval,
            plain.diagnostics,
            plain.warnings,
        )
        assert found.posteriors is not None
        assert len(list(objects(news))) > 8

    def test_over_the_wire(self, client: Client, cards: str, base: str) -> None:
        page = httpx.get(f"{base}/v1/models/{cards}/versions/1").json()
        answer = (200, {"Content-Type": "application/json"}, json.dumps(page | {"x": 1}).encode())
        with scripted(answer) as server, Client(server.base) as other:
            assert other.versions.get(cards) == client.versions.get(cards)

    def test_optional_fields_may_be_missing(self, estimate: dict[str, Any]) -> None:
        older = {k: v for k, v in estimate.items() if k not in ("labelled", "posteriors")}
        found = read(Estimate, {**older, "segment": {}})
        assert (found.labelled, found.posteriors) == (0, None)


class TestWrongAnswers:
    @pytest.mark.parametrize(
        "change",
        [{"version": "1"}, {"prevalence": [1]}, {"created_at": "soon"}, {"size": None}],
    )
    def test_they_do_not_become_results(
        self, client: Client, estimate: dict[str, Any], change: dict[str, Any]
    ) -> None:
        content = json.dumps({**estimate, "segment": {}, **change}).encode()
        with (
            scripted((200, {}, content)) as server,
            Client(server.base) as other,
            pytest.raises(UnexpectedAnswer),
        ):
            other.estimates.get("x")

    def test_a_missing_field(self) -> None:
        with pytest.raises(KeyError, match="digest"):
            read(Version, {"model": "m", "version": 1})


def test_results_are_frozen_and_small_to_look_at(client: Client, cards: str) -> None:
    found = client.estimate(cards, ROWS, include=["posteriors"], keep=False)
    with pytest.raises(AttributeError):
        found.size = 3  # type: ignore[misc]
    assert "posteriors=" not in repr(found)
    rows = client.posteriors(cards, np.full((1000, 2), 0.5))
    assert isinstance(rows, Posteriors)
    assert len(repr(rows)) < 1000
    assert isinstance(found.prevalence, Prevalence)
    assert len(found.prevalence) == 2
