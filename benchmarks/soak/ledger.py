"""Clients that write with idempotency keys until they are acknowledged, and what they were told."""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import httpx

CLASSES = ["legit", "fraud"]
PAUSE_SECONDS = 0.05
BATCH = [[0.4, 0.6], [0.9, 0.1], [0.7, 0.3]]


@dataclass
class Client:
    """One that registers versions of its own model, and estimates, each once.

    ``versions``, ``estimates``: addresses that were acknowledged, by what was asked.
    """

    base: str
    name: str
    versions: dict[str, str] = field(default_factory=dict)
    estimates: dict[str, str] = field(default_factory=dict)
    retried: int = 0
    refused: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Until told; then what is under way is carried to its end."""
        with httpx.Client(base_url=self.base, timeout=20) as http:
            self._insist(http, "/v1/models", {"name": self.name, "classes": CLASSES}, "model")
            number = 0
            while not stop.is_set():
                number += 1
                self._register(http, number)
                for k in range(5):
                    self._estimate(http, f"{number}.{k}")

    def _register(self, http: httpx.Client, number: int) -> None:
        share = number / 1_000_000
        source = {"priors": {"legit": 1 - share, "fraud": share}, "metadata": {"by": self.name}}
        key = f"version {number}"
        answer = self._insist(http, f"/v1/models/{self.name}/versions", {"source": source}, key)
        if answer is not None:
            self.versions[key] = answer.headers["location"]

    def _estimate(self, http: httpx.Client, number: str) -> None:
        key = f"estimate {number}"
        body = {"posteriors": BATCH, "segment": {"asked": number}}
        address = f"/v1/models/{self.name}/versions/latest/estimates"
        answer = self._insist(http, address, body, key)
        if answer is not None:
            self.estimates[key] = answer.headers["location"]

    def _insist(
        self, http: httpx.Client, address: str, body: Mapping[str, object], key: str
    ) -> httpx.Response | None:
        """Ask until there is an answer that is no failure of the moment."""
        while True:
            try:
                headers = {"Idempotency-Key": f"{self.name} {key}"}
                answer = http.post(address, json=body, headers=headers)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code in (200, 201):
                return answer
            if answer is not None and answer.status_code not in (429, 503):
                self.refused.append(f"{key}: {answer.status_code} {answer.text[:200]}")
                return None
            self.retried += 1
            time.sleep(PAUSE_SECONDS)


@dataclass(frozen=True)
class Verdict:
    """What was acknowledged, and what of it is not there, or there twice."""

    versions: int
    estimates: int
    retried: int
    lost: list[str]
    doubled: list[str]
    refused: list[str]

    @property
    def good(self) -> bool:
        """Whether everything is there, once."""
        return not (self.lost or self.doubled or self.refused)


def judged(base: str, clients: list[Client]) -> Verdict:
    """Look every acknowledged write up, and count what is there."""
    lost: list[str] = []
    doubled: list[str] = []
    with httpx.Client(base_url=base, timeout=60) as http:
        for client in clients:
            answers = (*client.versions.values(), *client.estimates.values())
            lost += [address for address in answers if http.get(address).status_code != 200]
            model = http.get(f"/v1/models/{client.name}").json()
            if model["versions"] != len(client.versions):
                doubled.append(f"{client.name}: {model['versions']} versions, not as many as asked")
            seen: set[str] = set()
            for item in kept(http, client.name):
                number = item["segment"]["asked"]
                if number in seen:
                    doubled.append(f"{client.name}: estimate {number}")
                seen.add(number)
            strangers = {f"estimate {number}" for number in seen} - set(client.estimates)
            doubled += [f"{client.name}: {one} was not acknowledged" for one in strangers]
    return Verdict(
        sum(len(client.versions) for client in clients),
        sum(len(client.estimates) for client in clients),
        sum(client.retried for client in clients),
        lost,
        doubled,
        [one for client in clients for one in client.refused],
    )


def kept(http: httpx.Client, name: str) -> Iterator[dict[str, dict[str, str]]]:
    """Every kept estimate of a model."""
    cursor: dict[str, str] = {}
    while True:
        page = http.get("/v1/estimates", params={"model": name, "limit": "200", **cursor}).json()
        yield from page["items"]
        if page["next_cursor"] is None:
            return
        cursor = {"cursor": page["next_cursor"]}
