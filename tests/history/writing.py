"""Writes a database as a release leaves it behind, and what that release says of it.

``python -m tests.history.writing FOLDER NAME`` makes ``NAME.sql.gz``, the database as SQL text, and
``NAME.json.gz``, every address that reads it with the answer. Run it once per release and keep the
files: later releases must read the same (``test_history``).
"""

import gzip
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import expit

from app.main import create_app
from app.settings import Settings
from models_store import schema
from models_store.engine import connect
from tests.conftest import served

CLASSES = ["legit", "fraud"]
SECRET = "a secret of tests alone"
LISTS = (
    "/v1/models",
    "/v1/estimates",
    "/v1/evaluations",
    "/v1/monitors",
    "/v1/alerts",
    "/v1/jobs",
    "/v1/webhooks",
)
COUNTED = {
    "class_counts": {"legit": 990, "fraud": 110},
    "confusion_matrix": [[900, 90], [10, 100]],
}
METHODS = ("cc", "pcc", "acc", "acc-qp", "pacc-qp", "em", "em-stop", "mle", "bayes", "cde")


def scores(seed: int, rows: int, share: float) -> tuple[list[str], list[list[float]]]:
    """Labels and posteriors, calibrated at a share of .2, of two normal classes."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < share).astype(int)
    positive = expit(2 * rng.normal(2.0 * labels) - 2 + np.log(0.2 / 0.8))
    rows_ = np.column_stack([1 - positive, positive]).round(6)
    return [CLASSES[k] for k in labels], [[1 - float(p), float(p)] for p in rows_[:, 1]]


def write(client: httpx.Client, data: Path) -> list[str]:
    """Some of everything that a database may hold; addresses that no list names."""

    def post(address: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
        answer = client.post(address, json=body, headers=headers)
        assert answer.status_code in (200, 201, 202), (address, answer.text)
        found: dict[str, Any] = answer.json()
        return found

    labels, posteriors = scores(1, 300, 0.2)
    features = [[float(i % 7), float(i % 3) + (label == "fraud")] for i, label in enumerate(labels)]
    validation = {"labels": labels, "posteriors": posteriors}
    version = "/v1/models/{}/versions/{}".format
    model = {"classes": CLASSES, "description": "kept"}
    post("/v1/models", {**model, "name": "counted", "source": COUNTED})
    source = {"validation": validation, "metadata": {"commit": "4f2a9c1"}}
    post("/v1/models", {**model, "name": "cards", "source": source})
    for calibration in ("isotonic", "platt", "temperature", "none"):
        post("/v1/models/cards/versions", {"validation": validation, "calibration": calibration})
    client.put("/v1/models/cards/aliases/champion", json={"version": 1}).raise_for_status()
    matched = {**validation, "features": features, "feature_names": ["a", "b"]}
    matched.pop("posteriors")
    post("/v1/models", {**model, "name": "matched", "source": {"validation": matched}})
    training = {"features": features, "labels": labels, "feature_names": ["a", "b"]}
    trained = {"training": {**training, "learner": "logistic-regression"}}
    post("/v1/models", {**model, "name": "trained", "source": trained})

    _, batch = scores(2, 150, 0.5)
    cards = version("cards", 1)
    for method in METHODS:
        body = {"posteriors": batch, "method": method, "include": ["trace", "histogram"]}
        post(f"{cards}/estimates", body)
    for number in (2, 3, 4, 5):
        post(f"{version('cards', number)}/estimates", {"posteriors": batch})
    when = {"observed_at": "2026-01-31T00:00:00Z", "segment": {"country": "BE", "shop": "é"}}
    known = {"labels": [None] * 140 + ["fraud"] * 10}
    kept = post(f"{cards}/estimates", {"posteriors": batch, **when, **known}, **_key("one"))
    post(f"{cards}/estimates", {"posteriors": batch, "interval": {"method": "bootstrap"}})
    counts = {"predicted_counts": {"legit": 140, "fraud": 60}}
    for method in ("acc", "acc-qp", "em", "mle", "bayes"):
        post(f"{version('counted', 1)}/estimates", {**counts, "method": method})
    for method, soft in (("rffm", True), ("kmm-gaussian", False), ("kmm-energy", False)):
        asked = {"features": features[:80], "method": method, "options": {"soft": soft}}
        post(f"{version('matched', 1)}/estimates", asked)
    post(f"{version('trained', 1)}/estimates", {"features": features[:60]})
    post(f"{cards}/evaluations", {"labels": scores(2, 150, 0.5)[0], "posteriors": batch})
    post(f"{cards}/evaluations", {"labels": scores(2, 150, 0.5)[0], "estimate": kept["id"]})

    _write_monitors(client, post)
    _write_jobs(client, post, data)
    hook = {"url": "https://hooks.example/priorshift", "events": ["alert.opened"]}
    post("/v1/webhooks", hook)
    return [f"/v1/adaptations/{id}" for id in _write_other_kinds(post, features, labels)]


def _key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


def _write_other_kinds(post: Any, features: list[list[float]], labels: list[str]) -> Iterator[str]:
    tree = {"features": features, "labels": labels, "feature_names": ["a", "b"], "max_depth": 3}
    body = {"name": "tree", "kind": "versatile-tree", "classes": CLASSES}
    post("/v1/models", {**body, "source": {"training": tree}})
    moved = [[2 * a + 1, b] for a, b in features[:100]]
    yield post("/v1/models/tree/versions/1/adaptations", {"features": moved})["id"]
    mixture: dict[str, Any] = {
        "proportions": [0.4, 0.6],
        "coefficients": [[1.0, 2.0], [-2.0, 0.5]],
        "sigmas": [0.3, 0.5],
    }
    city = {"name": "mixture", "kind": "regression-mixture", "source": {"parameters": mixture}}
    post("/v1/models", city)
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, 60)
    y = np.where(rng.random(60) < 0.4, 1 + 2 * x, -2 + 0.5 * x) + rng.normal(0, 0.4, 60)
    target = {"x": x[:, None].tolist(), "y": y.tolist()}
    gibbs: dict[str, Any] = {"method": "gibbs", "options": {"draws": 200}}
    for how in ({}, gibbs):
        yield post("/v1/models/mixture/versions/1/adaptations", {**target, **how})["id"]


def _write_monitors(client: httpx.Client, post: Any) -> None:
    alert = {"false_alarms": 1, "per": "P30D"}
    monitor = {"name": "watch", "model": "cards", "window": {"rows": 50}, "keep_rows": True}
    post("/v1/monitors", {**monitor, "segment_by": "country", "alert": alert, "version": 1})
    for day, share in ((1, 0.2), (2, 0.2), (3, 0.9), (4, 0.9), (5, 0.9)):
        for country in ("BE", "NL"):
            rows = scores(day, 50, share if country == "BE" else 0.2)[1]
            sent = {"posteriors": rows, "segment": {"country": country}}
            at = {"observed_at": f"2026-02-0{day}T12:00:00Z"}
            post("/v1/monitors/watch/observations", {**sent, **at})
    wait_until(lambda: client.get("/v1/monitors/watch/series").json()["count"] == 10)
    items = client.get("/v1/alerts").json()["items"]
    assert items, "no alert"
    client.patch(
        f"/v1/alerts/{items[-1]['id']}", json={"state": "acknowledged", "note": "seen"}
    ).raise_for_status()
    plain = {"name": "plain", "model": "counted", "window": {"rows": 1000}}
    post("/v1/monitors", plain)
    counts = {"predicted_counts": {"legit": 140, "fraud": 60}}
    post("/v1/monitors/plain/observations", {**counts, "observed_at": "2026-02-01T12:00:00Z"})


def _write_jobs(client: httpx.Client, post: Any, data: Path) -> None:
    labels, rows = scores(5, 200, 0.4)
    columns = {name: [row[k] for row in rows] for k, name in enumerate(CLASSES)}
    country = ["BE" if i % 3 else "NL" for i in range(200)]
    pq.write_table(pa.table({**columns, "truth": labels, "country": country}), data / "a.parquet")
    dataset = {"path": "a.parquet"}
    jobs: list[dict[str, Any]] = [
        {"kind": "estimate", "group_by": ["country"]},
        {"kind": "estimate", "segment": {"month": "2026-01"}},
        {"kind": "adjust", "output": "out"},
        {"kind": "register", "dataset": {**dataset, "label": "truth"}},
        {"kind": "estimate", "dataset": {"path": "a.parquet", "filter": "country = 'XX'"}},
    ]
    for job in jobs:
        made = post("/v1/jobs", {"model": "cards", "dataset": dataset, **job})
        address = f"/v1/jobs/{made['id']}"
        wait_until(lambda address=address: client.get(address).json()["finished_at"] is not None)


def wait_until(done: Callable[..., bool]) -> None:
    """Look again and again."""
    for _ in range(3000):
        if done():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def content(answer: httpx.Response) -> Any:
    """JSON as it is, the digest of anything else."""
    if answer.headers["content-type"] == "application/json":
        return answer.json()
    return sha256(answer.content).hexdigest()


def read(client: httpx.Client) -> dict[str, Any]:
    """Every address of what was written, with its answer."""
    answers: dict[str, Any] = {}

    def get(address: str) -> Any:
        answer = client.get(address)
        answer.raise_for_status()
        answers[address] = content(answer)
        return answers[address]

    for one in _addresses(get):
        get(one)
    return answers


def _addresses(get: Any) -> Iterator[str]:
    for address in LISTS:
        page = get(f"{address}?limit=200")
        assert page["next_cursor"] is None
        for item in page["items"]:
            yield f"{address}/{item.get('id') or item['name']}"
    for model in get("/v1/models?limit=200")["items"]:
        versions = f"/v1/models/{model['name']}/versions"
        for item in get(f"{versions}?limit=200")["items"]:
            yield f"{versions}/{item['version']}"
            if item.get("validation") is not None:
                yield f"{versions}/{item['version']}/scorecard"
    for name in ("watch", "plain"):
        yield f"/v1/monitors/{name}/series"
        windows = f"/v1/monitors/{name}/windows"
        for item in get(f"{windows}?limit=200")["items"]:
            if name == "watch" and item["state"] == "closed":
                yield f"{windows}/{item['id']}/rows"
    yield "/v1/estimates?segment.country=BE&limit=200"


def settings(url: str, folder: Path) -> Settings:
    """A service on this database that may read and write below the folder."""
    roots = {"data_roots": [str(folder)], "output_root": str(folder), "key_secret": SECRET}
    return Settings.model_validate({"database_url": url, **roots})


def main(folder: Path, name: str) -> None:
    """Write and read a database, and keep both."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "history.db"
        url = f"sqlite:///{path}"
        engine = connect(url)
        schema.migrate(engine)
        engine.dispose()
        with served(create_app(settings(url, Path(place)))) as client:
            adapted = write(client, Path(place))
            answers = read(client)
            for address in adapted:
                answers[address] = content(client.get(address).raise_for_status())
        with sqlite3.connect(path) as connection:
            dump = "\n".join(connection.iterdump())
    (folder / f"{name}.sql.gz").write_bytes(gzip.compress(dump.encode(), mtime=0))
    text = json.dumps(answers, sort_keys=True)
    (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
