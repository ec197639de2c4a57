"""Every page in every state, read as HTML from a real service."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from app.main import create_app
from app.page import assets, numbers, words
from app.page.selection import Choice
from app.settings import Settings
from app.stored.estimates import StoredEstimate
from tests.api.sources import COUNTED, register, scores, validation
from tests.conftest import served
from tests.monitoring import streams
from tests.stored.examples import ESTIMATE

HTML = {"Accept": "text/html"}
HOSTILE = "<script>alert(1)</script>'\"&{{7*7}}</script><!--"
VOID = {"meta", "link", "input", "img", "br", "col", "hr"}


class Document(HTMLParser):
    """What is in a page: it must be well nested, with nothing inline that runs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        assert not [name for name in given if name.startswith("on")], given
        if tag == "script":
            assert given.get("src") or given.get("type") == "application/json"
        if tag not in VOID and not (self.open and self.open[-1] == "svg" and tag != "svg"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            assert "svg" in self.open or tag in VOID, (tag, self.open)

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "script":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [given for name, given in self.elements if name == tag]


def read(client: httpx.Client, address: str, status: int = 200) -> Document:
    """A page, after what every page must have was checked."""
    answer = client.get(address, headers=HTML)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    document = Document(answer.text)
    assert len(document.all("h1")) == 1
    assert len(document.all("main")) == 1
    assert document.all("html")[0]["lang"] == "en"
    ids = [given["id"] for _, given in document.elements if given.get("id")]
    assert len(ids) == len(set(ids)), ids
    labels = {given.get("for") for given in document.all("label")}
    for tag in ("input", "select"):
        for given in document.all(tag):
            if given.get("type") not in ("hidden", "checkbox") and "hidden" not in given:
                assert given.get("id") in labels, given
    return document


def post(client: httpx.Client, address: str, content: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(address, json=content)
    assert answer.status_code < 300, answer.text
    found: dict[str, Any] = answer.json()
    return found


def estimated(client: httpx.Client, address: str, **more: Any) -> str:
    """The id of an estimate of rows with three times the share of fraud."""
    _, posteriors = scores(np.random.default_rng(2), 400, 0.6)
    content = {"posteriors": posteriors.tolist(), **more}
    estimate: str = post(client, f"{address}/estimates", content)["id"]
    return estimate


class TestOverview:
    def test_empty(self, client: httpx.Client) -> None:
        shown = read(client, "/")
        assert "No models yet" in shown.text
        assert "priorshift register" in shown.text

    def test_models_in_every_state(self, client: httpx.Client) -> None:
        post(client, "/v1/models", {"name": "bare", "classes": ["a", "b"]})
        register(client, "waits", COUNTED)
        address = register(client, "moves", {"validation": validation()}, description="of cards")
        estimated(client, address)
        estimated(client, address)
        steady = register(client, "steady", {"validation": validation()})
        _, posteriors = scores(np.random.default_rng(3), 400, 0.2)
        post(client, f"{steady}/estimates", {"posteriors": posteriors.tolist()})
        shown = read(client, "/")
        for words_ in ("register a version first", "post a batch", "Shift detected", "of cards"):
            assert words_ in shown.text
        assert "none in one batch" in shown.text
        assert [given["class"] for given in shown.all("svg")] == ["spark"]

    def test_more_than_a_page(self, client: httpx.Client) -> None:
        for i in range(21):
            post(client, "/v1/models", {"name": f"m{i:02}", "classes": ["a", "b"]})
        first = read(client, "/")
        following = [a["href"] for a in first.all("a") if a.get("rel") == "next"]
        assert "m19" in first.text
        assert "m20" not in first.text
        assert following[0] is not None
        assert "m20" in read(client, following[0]).text

    def test_other_kinds_and_many_classes(self, client: httpx.Client) -> None:
        post(client, "/v1/models", {"name": "tree", "kind": "regression-mixture"})
        names = [f"class {k}" for k in range(400)]
        source = {"class_counts": dict.fromkeys(names, 10)}
        post(client, "/v1/models", {"name": "wide", "classes": names, "source": source})
        rows = np.random.default_rng(0).dirichlet(np.full(400, 0.05), 30)
        made = post(client, "/v1/models/wide/versions/1/estimates", {"posteriors": rows.tolist()})
        shown = read(client, "/")
        assert "regression-mixture" in shown.text
        assert "and 397 more classes" in shown.text
        assert "class 399" in read(client, f"/estimates/{made['id']}").text
        assert len(read(client, "/models/wide").all("option")) > 400
        read(client, "/models/wide/versions/1")
        assert "adapts to a sample" in read(client, "/models/tree").text


class TestModel:
    def test_without_a_version_and_without_estimates(self, client: httpx.Client) -> None:
        post(client, "/v1/models", {"name": "bare", "classes": ["a", "b"]})
        shown = read(client, "/models/bare").text
        assert "No version yet" in shown
        assert "No estimates yet" in shown

    def test_over_time(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation()})
        for day in (1, 2, 3):
            moment, country = f"2026-01-0{day}T10:00:00Z", "BE" if day < 3 else "NL"
            estimated(client, address, observed_at=moment, segment={"country": country})
        shown = read(client, "/models/cards")
        assert re.search(r"fraud rose from \d\d\.\d % to [56]\d\.\d %", shown.text)
        assert "3 estimates, newest first" in shown.text
        assert shown.text.count("2026-01-0") >= 3
        assert [d["data-chart"] for d in shown.all("div") if d.get("data-chart")] == ["series"]
        part = read(client, "/models/cards?segment=country%3DNL")
        assert "1 estimate, newest first" in part.text
        days = read(client, "/models/cards?from=2026-01-02&to=2026-01-02&class=legit&class=fraud")
        assert "1 estimate, newest first" in days.text
        nothing = read(client, "/models/cards?range=24h").text
        assert "Nothing in this range" in nothing

    @pytest.mark.parametrize(
        "query",
        ["class=x", "range=1y", "from=soon", "to=9999-99-99", "who=me", "range=7d&range=7d"],
    )
    def test_wrong_addresses(self, client: httpx.Client, query: str) -> None:
        register(client, "cards", COUNTED)
        assert "wrong" in read(client, f"/models/cards?{query}", 422).text

    def test_unknown(self, client: httpx.Client) -> None:
        for address in ("/models/none", "/models/NONE", "/models/none/versions/1", "/nowhere"):
            assert "There is nothing here" in read(client, address, 404).text
        assert client.get("/models/none").headers["content-type"] == "application/problem+json"


class TestVersion:
    def test_with_a_validation_set(self, client: httpx.Client) -> None:
        register(client, "cards", {"validation": validation(2000)})
        shown = read(client, "/models/cards/versions/latest")
        for expected in ("What it confuses", "batches were drawn", "Calibration of fraud", "bcts"):
            assert expected in shown.text
        kinds = [d["data-chart"] for d in shown.all("div") if d.get("data-chart")]
        assert kinds == ["scorecard", "calibration"]
        cells = [td["class"] for td in shown.all("td") if re.match("h\\d", td.get("class") or "")]
        assert len(cells) == 4

    def test_with_priors_alone(self, client: httpx.Client) -> None:
        register(client, "cards", {"priors": {"legit": 0.9, "fraud": 0.1}})
        shown = read(client, "/models/cards/versions/1").text
        assert "Nothing is known of its errors" in shown
        assert "No scorecard" in shown
        assert "No curve" in shown
        assert "the version has no confusion matrix" in shown

    def test_a_large_matrix_is_shown_by_its_mistakes(self, client: httpx.Client) -> None:
        names = [f"k{i}" for i in range(40)]
        counts = (np.eye(40) * 90 + np.roll(np.eye(40), 1, axis=1) * 10).tolist()
        source = {"class_counts": dict.fromkeys(names, 100), "confusion_matrix": counts}
        post(client, "/v1/models", {"name": "wide", "classes": names, "source": source})
        shown = read(client, "/models/wide/versions/1").text
        assert "these are its most frequent mistakes" in shown
        assert "k0 k1 10 10.0 %" in shown


class TestEstimate:
    def test_what_it_says(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(2000)})
        id = estimated(client, address, method="em", include=["trace", "histogram"])
        shown = read(client, f"/estimates/{id}")
        assert re.search(r"fraud rose from \d\d\.\d % to [56]\d\.\d % \(\d", shown.text)
        assert "appears by chance in fewer than 1 of 1,000,000 batches" in shown.text
        kinds = [d["data-chart"] for d in shown.all("div") if d.get("data-chart")]
        assert kinds == ["bars", "trace", "histogram", "calibration"]
        assert "Nobody has told yet" in shown.text
        labels = ["fraud"] * 250 + ["legit"] * 150
        post(client, f"{address}/evaluations", {"labels": labels, "estimate": id})
        assert "of 2 classes" in read(client, f"/estimates/{id}?class=legit").text

    def test_of_counts_alone(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        counts = {"predicted_counts": {"legit": 30, "fraud": 12}}
        id = post(client, f"{address}/estimates", counts)["id"]
        shown = read(client, f"/estimates/{id}").text
        assert "The scores were not counted" in shown
        assert "No trace was kept" in shown
        assert "small-batch" in shown
        assert "No curve" in shown

    def test_untested(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"priors": {"legit": 0.9, "fraud": 0.1}})
        counts = {"predicted_counts": {"legit": 30, "fraud": 12}}
        id = post(client, f"{address}/estimates", counts)["id"]
        assert "could not be tested for a shift" in read(client, f"/estimates/{id}").text

    def test_unknown(self, client: httpx.Client) -> None:
        for id in ("0" * 32, "x", "%2e%2e"):
            read(client, f"/estimates/{id}", 404)


class TestMonitor:
    def test_before_its_first_window(self, client: httpx.Client) -> None:
        streams.register(client)
        streams.make(client, description="payments", alert={"false_alarms": 1, "per": "P30D"})
        assert "No window yet" in read(client, "/").text
        shown = read(client, "/monitors/m")
        assert "No windows yet" in shown.text
        assert "1 false alarm per 30 days" in shown.text

    def test_windows_and_an_alert(self, client: httpx.Client) -> None:
        streams.register(client)
        alert = {"false_alarms": 1, "per": "P30D"}
        window = {"duration": "PT1H"}
        streams.make(client, alert=alert, window=window, segment_by="country")
        rng = np.random.default_rng(1)
        for hour in range(4):
            share = 0.2 if hour < 2 else 0.8
            streams.post(
                client,
                streams.rows(rng, 300, share)[1],
                observed_at=f"2026-01-30T{hour:02}:10:00Z",
                segment={"country": "BE"},
            )
        streams.series(client, 3)
        shown = read(client, "/monitors/m")
        assert "Alert open" in shown.text
        assert "3 windows, newest first" in shown.text
        assert "detected" in shown.text
        windows = client.get("/v1/monitors/m/windows", params={"state": "closed"}).json()["items"]
        linked = [str(a["href"]) for a in shown.all("a") if "/estimates/" in str(a.get("href"))]
        assert sorted({*linked}) == sorted(f"/estimates/{w['estimate']}" for w in windows)
        read(client, linked[-1])
        buttons = [b for b in shown.all("button") if b.get("data-acknowledge")]
        assert len(buttons) == 1
        answer = client.patch(str(buttons[0]["data-acknowledge"]), json={"state": "acknowledged"})
        assert answer.status_code == 200
        again = read(client, "/monitors/m?segment=BE&class=fraud&from=2026-01-30")
        assert "Alert acknowledged" in again.text
        assert "acknowledged by anonymous" in again.text
        link = next(a["href"] for a in again.all("a") if "format=csv" in (a.get("href") or ""))
        lines = client.get(str(link)).text.splitlines()
        assert len(lines) == 4
        assert all(",fraud," in line for line in lines[1:])
        assert "Nothing in this range" in read(client, "/monitors/m?range=24h").text
        read(client, "/monitors/m?segment=XX", 422)
        assert "Alert acknowledged" in read(client, "/").text

    def test_unknown(self, client: httpx.Client) -> None:
        read(client, "/monitors/none", 404)


class TestTry:
    def test_nothing_to_try(self, client: httpx.Client) -> None:
        post(client, "/v1/models", {"name": "bare", "classes": ["a", "b"]})
        assert "No classifier to try" in read(client, "/try").text

    def test_the_form(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        shown = read(client, "/try?model=cards")
        assert [o.get("value") for o in shown.all("option")] == ["cards"]
        read(client, "/try?model=none", 404)
        read(client, "/try?model=No%20Name", 422)


class TestErrors:
    def test_a_database_that_cannot_be_used(self, tmp_path: Path) -> None:
        settings = Settings(database_url=f"sqlite:///{tmp_path}/empty.db")
        with served(create_app(settings)) as client:
            shown = read(client, "/", 503)
            assert "priorshift migrate" in shown.text
            assert client.get("/", headers=HTML).headers["retry-after"] == "1"
            assert client.get("/sign-in", headers=HTML).status_code == 200

    def test_the_wrong_verb(self, lasting: httpx.Client) -> None:
        answer = lasting.post("/try", headers=HTML)
        assert answer.status_code == 405
        assert answer.headers["allow"] == "GET, HEAD"
        assert "This page does not take that" in answer.text

    def test_head_has_no_body(self, lasting: httpx.Client) -> None:
        for address, status in (("/", 200), ("/nowhere", 404)):
            answer = lasting.head(address, headers=HTML)
            assert (answer.status_code, answer.content) == (status, b"")


class TestHostileNames:
    def test_are_text_everywhere(self, client: httpx.Client) -> None:
        classes = [HOSTILE, "'onload=alert(2) x='"]
        labels, posteriors = scores(np.random.default_rng(1), 400, 0.2)
        source = {
            "validation": {
                "labels": [classes[k] for k in labels],
                "posteriors": posteriors.tolist(),
                "columns": classes,
            },
            "metadata": {HOSTILE: HOSTILE},
        }
        model = {"name": "evil", "classes": classes, "description": HOSTILE, "source": source}
        post(client, "/v1/models", model)
        id = estimated(
            client,
            "/v1/models/evil/versions/1",
            columns=classes,
            segment={"key": HOSTILE},
            method="em",
            include=["trace", "histogram"],
        )
        post(
            client,
            "/v1/monitors",
            {"name": "m", "model": "evil", "window": {"rows": 100}, "description": HOSTILE},
        )
        addresses = ["/", "/models/evil", "/models/evil/versions/1", f"/estimates/{id}", "/try"]
        for address in [*addresses, "/monitors/m"]:
            answer = client.get(address, headers=HTML)
            assert "<script>alert" not in answer.text
            assert "49" not in re.findall(r"&amp;(.{2})", answer.text)
            shown = read(client, address)
            if address != "/try":
                assert "<script>alert(1)</script>" in shown.text

    def test_in_addresses(self, client: httpx.Client) -> None:
        for address in ("/models/%3Cscript%3E", "/sign-in?next=%22%3E%3Cscript%3E", "/%3Cb%3E"):
            answer = client.get(address, headers=HTML)
            assert "<script>" not in answer.text
            assert "<b>" not in answer.text


class TestAssets:
    def test_only_what_pages_load(self, lasting: httpx.Client) -> None:
        for name in (*assets.OWN, *assets.BOKEH):
            answer = lasting.get(f"/static/{assets.EDITION}/{name}")
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == assets.FOR_GOOD
            assert answer.headers["x-content-type-options"] == "nosniff"
        for name in (
            "bokeh.js",
            "bokeh-widgets.min.js",
            "compiler.js",
            "",
            ".",
            "..%2f..%2fpage.css",
            "%2e%2e/render.py",
            "..%5crender.py",
            "lib",
            "PAGE.CSS",
        ):
            assert lasting.get(f"/static/{assets.EDITION}/{name}").status_code == 404, name

    def test_another_edition_is_asked_for_again(self, lasting: httpx.Client) -> None:
        answer = lasting.get("/static/0.0.1-beef/page.css")
        assert answer.headers["cache-control"] == "no-cache"
        etag = {"If-None-Match": answer.headers["etag"]}
        assert lasting.get("/static/0.0.1-beef/page.css", headers=etag).status_code == 304

    def test_are_sent_compressed(self, lasting: httpx.Client) -> None:
        with lasting.stream("GET", f"/static/{assets.EDITION}/bokeh.min.js") as answer:
            size = sum(len(part) for part in answer.iter_raw())
        assert answer.headers["content-encoding"] in ("gzip", "zstd")
        assert size < 450_000

    def test_every_file_of_a_page_is_served(self, lasting: httpx.Client) -> None:
        shown = read(lasting, "/try")
        links = [*shown.all("script"), *shown.all("img"), *shown.all("link")]
        addresses = {given.get("src") or given.get("href") for given in links}
        for address in addresses - {None}:
            assert lasting.get(str(address)).status_code == 200, address


def test_bokeh_itself_is_never_loaded() -> None:
    code = "import sys, app.main, app.page.site; app.main.create_app; print('bokeh' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0.0, "0.0 %"),
        (0.00001, "< 0.01 %"),
        (0.0023, "0.23 %"),
        (0.023, "2.3 %"),
        (0.5, "50.0 %"),
        (1.0, "100.0 %"),
        (None, "–"),
    ],
)
def test_percent(share: float | None, told: str) -> None:
    assert numbers.percent(share) == told


@pytest.mark.parametrize(
    ("p", "told"),
    [
        (0.00018, "2 of 10,000 batches"),
        (0.34, "34 of 100 batches"),
        (0.034, "3 of 100 batches"),
        (1.0, "100 of 100 batches"),
        (0.0009999, "10 of 10,000 batches"),
        (0.0, "fewer than 1 of 1,000,000 batches"),
    ],
)
def test_chance(p: float, told: str) -> None:
    assert numbers.chance(p) == told


def test_the_sentence() -> None:
    told = words.sentence(StoredEstimate.read(ESTIMATE))
    assert told == (
        "fraud rose from 1.0 % to 2.3 % (1.4–3.4 %); a difference like this appears by chance in "
        "2 of 10,000 batches."
    )


def test_a_choice_goes_through_its_address() -> None:
    choice = Choice(("a b", "c&d"), "country=BE", "7d")
    assert choice.query() == "class=a+b&class=c%26d&segment=country%3DBE&range=7d"


def test_spans() -> None:
    told = [numbers.span(seconds) for seconds in (3600, 7200, 86_400 * 30, 90, 45)]
    assert told == ["1 hour", "2 hours", "30 days", "90 seconds", "45 seconds"]
