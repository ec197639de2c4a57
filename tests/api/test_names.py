"""Names over HTTP: one rule at every place that takes one, and one name however it is typed."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa
from pyarrow import csv

from app.formats import arrow
from app.main import create_app
from app.settings import Settings
from models_store.engine import connect
from tests.api.sources import COUNTED, validation
from tests.conftest import served
from tests.core.test_names import E_APART, E

JSON = "application/json"
UNSEEN = ["\x1b", "\t", "\n", "\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\u00ad", "\ufe0f"]
DIRECTIONS = ["\x1b", "\u202e", "\u2066"]
WINDOW = {"name": "w", "model": "cards", "window": {"rows": 100}}
HOOK = {"url": "https://93.184.215.14/", "events": ["alert.opened"]}
TRAINING = {"features": [[1], [2], [3], [4]], "labels": ["a", "a", "b", "b"], "folds": 2}


def model(**given: Any) -> dict[str, Any]:
    return {"name": "new", "classes": ["a", "b"], **given}


def trained(bad: str) -> dict[str, Any]:
    training = {**TRAINING, "learner": "logistic-regression", "feature_names": [bad]}
    return model(source={"training": training})


PLACES: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "class": ("POST", "/v1/models", lambda bad: model(classes=["a", bad])),
    "class of a tree": (
        "POST",
        "/v1/models",
        lambda bad: model(kind="versatile-tree", classes=["a", bad]),
    ),
    "output": (
        "POST",
        "/v1/models",
        lambda bad: model(source={**COUNTED, "outputs": ["a", bad]}),
    ),
    "feature": ("POST", "/v1/models", trained),
    "segment": (
        "POST",
        "/v1/models/cards/versions/1/estimates",
        lambda bad: {"predicted_counts": {"legit": 9}, "segment": {"k": bad}},
    ),
    "segment of observations": (
        "POST",
        "/v1/monitors/seg/observations",
        lambda bad: {"posteriors": [[0.5, 0.5]], "segment": {"k": bad}},
    ),
    "key": ("POST", "/v1/api-keys", lambda bad: {"name": bad, "scopes": ["read"]}),
    "monitor": ("POST", "/v1/monitors", lambda bad: {**WINDOW, "name": bad}),
    "model": ("POST", "/v1/models", lambda bad: model(name=bad)),
    "column": (
        "POST",
        "/v1/jobs",
        lambda bad: {
            "kind": "estimate",
            "model": "cards",
            "dataset": {"path": "a.csv", "columns": {"legit": bad}},
        },
    ),
    "group": (
        "POST",
        "/v1/jobs",
        lambda bad: {
            "kind": "estimate",
            "model": "cards",
            "dataset": {"path": "a.csv"},
            "group_by": [bad],
        },
    ),
}
TEXTS: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "model": ("POST", "/v1/models", lambda bad: model(description=bad)),
    "model, changed": ("PATCH", "/v1/models/cards", lambda bad: {"description": bad}),
    "monitor": ("POST", "/v1/monitors", lambda bad: {**WINDOW, "description": bad}),
    "monitor, changed": ("PATCH", "/v1/monitors/seg", lambda bad: {"description": bad}),
    "webhook": ("POST", "/v1/webhooks", lambda bad: {**HOOK, "description": bad}),
    "alert": ("PATCH", f"/v1/alerts/{'0' * 32}", lambda bad: {"state": "closed", "note": bad}),
}


@pytest.fixture(scope="module")
def service(lasting: httpx.Client) -> httpx.Client:
    """With a model, and a monitor by segments."""
    body = model(name="cards", classes=["legit", "fraud"], source={"validation": validation(400)})
    assert lasting.post("/v1/models", json=body).is_success
    made = lasting.post("/v1/monitors", json={**WINDOW, "name": "seg", "segment_by": "k"})
    assert made.is_success, made.text
    return lasting


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("where", PLACES)
def test_no_name_holds_what_nobody_sees(service: httpx.Client, where: str) -> None:
    method, path, body = PLACES[where]
    for bad in UNSEEN:
        answer = service.request(method, path, json=body(f"x{bad}y"))
        assert answer.status_code == 422, (bad, answer.text)
        assert not set(UNSEEN) & set(answer.json()["detail"])
    lone = service.request(
        method, path, content=as_bytes(body("x\ud800y")), headers={"content-type": JSON}
    )
    assert lone.status_code == 400


@pytest.mark.parametrize("where", TEXTS)
def test_no_text_turns_the_direction_or_controls_a_terminal(
    service: httpx.Client, where: str
) -> None:
    method, path, body = TEXTS[where]
    for bad in DIRECTIONS:
        answer = service.request(method, path, json=body(f"x{bad}y"))
        assert answer.status_code == 422, (bad, answer.text)
        assert "leave it out" in answer.text


def test_names_are_kept_composed_and_each_is_there_once(service: httpx.Client) -> None:
    body = model(name="composed", classes=[E_APART, "b"], description=E_APART)
    made = service.post("/v1/models", json=body).json()
    assert made["classes"] == [E, "b"]
    assert made["description"] == E_APART
    answer = service.post("/v1/models", json=model(classes=[E, E_APART]))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/classes/1"


def test_a_segment_that_grows_when_it_is_composed_is_measured_then(service: httpx.Client) -> None:
    """U+0958 has no composed form: it becomes two characters."""
    path = "/v1/models/cards/versions/1/estimates"
    for count, status in ((128, 201), (129, 422), (256, 422)):
        body = {"predicted_counts": {"legit": 9}, "segment": {"k": "\u0958" * count}}
        answer = service.post(path, json=body)
        assert answer.status_code in (status, 409), answer.text
    for count, status in ((100, 201), (101, 422)):
        body = model(name=f"grown-{count}", classes=["\u0958" * count, "b"])
        assert service.post("/v1/models", json=body).status_code == status


ROWS = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
KINDS = (JSON, *arrow.KINDS)


def sheet(kind: str, columns: dict[str, Any]) -> bytes:
    """A table by other means than the service's own."""
    if kind == arrow.NDJSON:
        rows = zip(*columns.values(), strict=True)
        return b"".join(as_bytes(dict(zip(columns, row, strict=True))) + b"\n" for row in rows)
    table, out = pa.table(columns), io.BytesIO()
    if kind == arrow.CSV:
        csv.write_csv(table, out)
    elif kind == arrow.PARQUET:
        import pyarrow.parquet as pq

        pq.write_table(table, out)
    else:
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


class Old:
    """A service whose database holds a model from before names were composed."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.version = "/v1/models/old/versions/1"

    def ask(self, path: str, kind: str, columns: dict[str, Any], **query: str) -> httpx.Response:
        headers = {"content-type": kind}
        address = f"{self.version}/{path}"
        if kind != JSON:
            content = sheet(kind, columns)
            return self.client.post(address, content=content, params=query, headers=headers)
        if "predictions" in query or "labels" in query:
            body = {name: columns[column] for name, column in query.items()}
            rest = {k: v for k, v in columns.items() if k not in query.values()}
            body |= {"posteriors": rest} if rest else {}
        else:
            body = {"posteriors": columns}
        return self.client.post(address, json=body)


@pytest.fixture(scope="module", params=[E, E_APART])
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Old]:
    kept: str = request.param
    path = tmp_path_factory.mktemp("old") / "old.db"
    path.write_bytes(request.getfixturevalue("sqlite_template").read_bytes())
    settings = Settings(database_url=f"sqlite:///{path}")
    given = validation(400)
    labels = [E if label == "fraud" else label for label in given["labels"]]
    source = {
        "class_counts": {"legit": 320, E: 80},
        "confusion_matrix": [[300, 20], [10, 70]],
        "validation": {**given, "labels": labels},
    }
    with served(create_app(settings)) as client:
        body = {"name": "old", "classes": ["legit", E], "source": source}
        assert client.post("/v1/models", json=body).is_success
    engine = connect(settings.database_url)
    with engine.begin() as connection:
        statement = sa.text("UPDATE models SET classes = :classes")
        connection.execute(statement, {"classes": json.dumps(["legit", kept])})
        statement = sa.text("UPDATE versions SET derived = REPLACE(derived, :now, :then)")
        for now, then in ((E, kept), (json.dumps(E)[1:-1], json.dumps(kept)[1:-1])):
            connection.execute(statement, {"now": now, "then": then})
    engine.dispose()
    with served(create_app(settings)) as client:
        assert client.get("/v1/models/old").json()["classes"] == ["legit", kept]
        yield Old(client)


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_found_in_every_format_and_form(old: Old, kind: str) -> None:
    """As a column, as a label, as a prediction; in a database from before as in one of today."""
    found = []
    for form in (E, E_APART):
        columns = {"legit": ROWS[:, 0].tolist(), form: ROWS[:, 1].tolist()}
        adjusted = old.ask("posteriors", kind, columns)
        assert adjusted.status_code == 200, adjusted.text
        labelled = {**columns, "truth": ["legit", form, form]}
        answer = old.ask("estimates?keep=false", kind, labelled, labels="truth")
        if kind != JSON:
            address = f"{old.version}/estimates"
            query = {"keep": "false", "labels": "truth"}
            answer = old.client.post(
                address, content=sheet(kind, labelled), params=query, headers={"content-type": kind}
            )
        assert answer.status_code == 200, answer.text
        assert answer.json()["labelled"] == 3
        predicted = {"said": ["legit", form, form]}
        said = old.ask("shift-tests", kind, predicted, predictions="said")
        assert said.status_code == 200, said.text
        found.append((adjusted.content, answer.json()["prevalence"], said.json()["shift"]))
    assert found[0] == found[1]


def test_a_name_is_found_wherever_a_body_is_keyed_by_it(old: Old) -> None:
    for form in (E, E_APART):
        priors = {"legit": 0.8, form: 0.2}
        npy = io.BytesIO()
        np.save(npy, ROWS)
        query = "&".join(f"columns={quote(name)}" for name in ("legit", form))
        asked = old.client.post(
            f"{old.version}/posteriors?{query}",
            content=npy.getvalue(),
            headers={"content-type": "application/x-npy"},
        )
        assert asked.status_code == 200, asked.text
        rows = ROWS.tolist()
        for path, body in (
            ("posteriors", {"posteriors": rows, "target_priors": priors}),
            ("posteriors", {"posteriors": rows, "columns": [form, "legit"]}),
            ("region-tests", {"posteriors": rows, "priors": priors}),
            ("shift-tests", {"predicted_counts": {"legit": 3, form: 2}}),
            ("posteriors", {"posteriors": rows, "method": "bayes", "options": {"prior": priors}}),
            (
                "bias-adjustments",
                {"intercepts": {"legit": 1.0}, "reference": form, "target_priors": priors},
            ),
        ):
            answer = old.client.post(f"{old.version}/{path}", json=body)
            assert answer.status_code == 200, (path, form, answer.text)
    twice = {"posteriors": rows, "target_priors": {"legit": 0.8, E: 0.1, E_APART: 0.1}}
    answer = old.client.post(f"{old.version}/posteriors", json=twice)
    assert answer.status_code == 422
    assert "twice" in answer.text


def test_a_segment_is_one_however_it_is_typed(service: httpx.Client) -> None:
    path = "/v1/models/cards/versions/1/estimates"
    rows = [[0.9, 0.1]] * 20
    for form in (E, E_APART):
        body = {"posteriors": rows, "segment": {"town": form}}
        assert service.post(path, json=body).json()["segment"] == {"town": E}
    for form in (E, E_APART):
        found = service.get("/v1/estimates", params={"segment.town": form}).json()["items"]
        assert len(found) == 2
    content = sheet(
        arrow.CSV,
        {"legit": [0.9] * 40, "fraud": [0.1] * 40, "town": [E, E_APART] * 20},
    )
    grouped = service.post(
        f"{path}?keep=false&group_by=town", content=content, headers={"content-type": arrow.CSV}
    )
    assert grouped.status_code == 200, grouped.text
    assert [item["group"] for item in grouped.json()["items"]] == [E]
    observed = service.post(
        "/v1/monitors/seg/observations",
        json={"posteriors": rows[:4], "segment": {"k": [E, E_APART, "x", E_APART]}},
    )
    assert observed.status_code == 202, observed.text
    accepted = {s["segment"]: s["accepted"] for s in observed.json()["streams"]}
    assert accepted == {E: 3, "x": 1}
    for form in (E, E_APART):
        for what in ("series", "windows"):
            answer = service.get(f"/v1/monitors/seg/{what}", params={"segment": form})
            assert answer.status_code == 200, answer.text


def test_segments_from_before_go_on(sqlite_url: str) -> None:
    """Rows of a segment that a monitor has join it, though it could not be made today."""
    kept = [E_APART, "B\u200bE"]
    settings = Settings(database_url=sqlite_url)
    app = create_app(settings)
    with served(app) as client:
        body = model(
            name="cards", classes=["legit", "fraud"], source={"validation": validation(400)}
        )
        assert client.post("/v1/models", json=body).is_success
        assert client.post("/v1/monitors", json={**WINDOW, "segment_by": "k"}).is_success
        with app.state.services.store.write() as unit:
            for segment in kept:
                unit.windows.stream(unit.monitors.get("w").id, segment, 10)
        for sent, expected in ((E, kept[0]), (E_APART, kept[0]), (kept[1], kept[1])):
            body = {"posteriors": [[0.5, 0.5]], "segment": {"k": sent}}
            answer = client.post("/v1/monitors/w/observations", json=body)
            assert answer.status_code == 202, answer.text
            assert [s["segment"] for s in answer.json()["streams"]] == [expected]
            query = {"segment": sent}
            assert client.get("/v1/monitors/w/windows", params=query).json()["items"]
            assert client.get("/v1/monitors/w/series", params=query).status_code == 200
        assert client.get("/v1/monitors/w").json()["segments"] == 2


def test_levels_of_features_are_one_however_they_are_typed(service: httpx.Client) -> None:
    features = [[E], [E_APART], ["x"], ["x"]] * 5
    training = {
        "features": features,
        "labels": ["a", "a", "b", "b"] * 5,
        "learner": "logistic-regression",
        "feature_names": ["word"],
        "categorical": ["word"],
        "folds": 2,
    }
    made = service.post("/v1/models", json=model(name="levels", source={"training": training}))
    assert made.status_code == 201, made.text
    answers = []
    for form in (E, E_APART):
        body = {"features": [[form]], "target_priors": {"a": 0.5, "b": 0.5}}
        answer = service.post("/v1/models/levels/versions/1/posteriors", json=body).json()
        assert "unknown-level" not in [w["code"] for w in answer["warnings"]]
        answers.append(answer["posteriors"])
    assert answers[0] == answers[1]


CLASSES = ('=HYPERLINK("http://x")', "+1+1", "-2+3", "@x", "-1", "'=y", 'a"b', E)


@pytest.fixture(scope="module")
def version(service: httpx.Client) -> str:
    share = 1 / len(CLASSES)
    body = model(
        name="sheets",
        classes=list(CLASSES),
        source={"priors": dict.fromkeys(CLASSES, share)},
    )
    assert service.post("/v1/models", json=body).status_code == 201
    return "/v1/models/sheets/versions/1"


class TestSheets:
    def asked(self, service: httpx.Client, version: str, content: bytes) -> httpx.Response:
        target = {f"target_priors.{n}": str(1 / 8) for n in CLASSES}
        headers = {"content-type": arrow.CSV, "accept": arrow.CSV}
        answer = service.post(
            f"{version}/posteriors", content=content, params=target, headers=headers
        )
        assert answer.status_code == 200, answer.text
        return answer

    def test_no_cell_is_a_formula_and_the_service_reads_it_back(
        self, service: httpx.Client, version: str
    ) -> None:
        rows = np.random.default_rng(0).dirichlet(np.ones(8), 30)
        raw = sheet(arrow.CSV, {n: rows[:, k] for k, n in enumerate(CLASSES)})
        answer = self.asked(service, version, raw)
        assert "escaped-names" in answer.headers["priorshift-warnings"]
        header = answer.text.splitlines()[0]
        assert '"\'=HYPERLINK(""http://x"")"' in header
        assert '"-1"' in header
        read = csv.read_csv(io.BytesIO(answer.content))
        for name in read.column_names:
            assert name == "-1" or name[0] not in "=+-@"
        again = self.asked(service, version, answer.content)
        assert again.text.splitlines()[0] == header
        first = np.column_stack([read.column(k) for k in range(8)])
        second = csv.read_csv(io.BytesIO(again.content))
        assert np.allclose(first, np.column_stack([second.column(k) for k in range(8)]))
        assert np.allclose(first, rows)

    def test_other_formats_have_the_names_as_they_are(
        self, service: httpx.Client, version: str
    ) -> None:
        body = {
            "posteriors": [[1 / 8] * 8],
            "target_priors": dict.fromkeys(CLASSES, 1 / 8),
        }
        for kind in (arrow.NDJSON, arrow.ARROW, arrow.PARQUET):
            answer = service.post(f"{version}/posteriors", json=body, headers={"accept": kind})
            frame = arrow.decode(kind, answer.content, arrow.Limits(10, 10**6))
            assert tuple(frame.columns) == CLASSES
            assert "escaped-names" not in answer.headers["priorshift-warnings"]
