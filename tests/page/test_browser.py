"""A real Chromium walks through the pages of a filled service."""

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from app.main import create_app
from app.settings import Settings
from benchmarks.filled import CARDS, batch
from tests.api.sources import scores
from tests.api.test_access import ADMIN, guarded_settings
from tests.conftest import served
from tests.page.conftest import Filled
from tests.patience import patience

LARGE_TEXT = 24.0
"""Pixels from which 3:1 is enough contrast; smaller text needs 4.5:1."""
GLYPHS = """() => Bokeh.documents.map((document) => {
  const figures = document.roots().flatMap((root) => root.children ?? [root]);
  return figures.map((figure) => figure.renderers.filter((r) => r.glyph).map((renderer) => ({
    kind: renderer.glyph.type,
    count: Math.max(...[...renderer.data_source.columns()].map(
      (name) => renderer.data_source.get_column(name).length)),
  })));
})"""
CONTRAST = """() => {
  const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
      if (colour[3] > 0) throw new Error(`half transparent: ${at.className}`);
    }
    return [255, 255, 255];
  };
  const seen = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest("script, option, svg, .hidden, :disabled, :has(> :disabled)")) continue;
    const [a, b] = [light(rgb(style.color)), light(ground(element))].sort((x, y) => y - x);
    seen.push({ text: walker.currentNode.data.trim().slice(0, 40), ratio: (a + 0.05) / (b + 0.05),
      size: parseFloat(style.fontSize) });
  }
  return seen;
}"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@dataclass
class Visit:
    """A page with what went wrong in it."""

    page: Page
    base: str
    wrong: list[str] = field(default_factory=list)

    def open(self, address: str, charts: int = 0) -> Page:
        """Go there, and wait until its charts are drawn."""
        self.page.goto(self.base + address)
        self.drawn(charts)
        return self.page

    def drawn(self, charts: int) -> None:
        """Wait for so many charts."""
        drawn = self.page.locator("[data-drawn]")
        if charts:
            drawn.nth(charts - 1).wait_for()
        assert drawn.count() == charts

    def glyphs(self) -> dict[str, int]:
        """Kinds of glyphs on the page, and how many points they have in all."""
        found: dict[str, int] = {}
        for document in self.page.evaluate(GLYPHS):
            for figure in document:
                for glyph in figure:
                    found[glyph["kind"]] = found.get(glyph["kind"], 0) + glyph["count"]
        return found


@contextmanager
def visiting(browser: Browser, base: str, **look: Any) -> Iterator[Visit]:
    """A visit in which nothing may go wrong, and no request may leave the service."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, **look)
    context.set_default_timeout(1000 * patience(30))
    visit = Visit(context.new_page(), base)

    def request(url: str) -> None:
        if not url.startswith((base, "data:", "blob:")):
            visit.wrong.append(f"left the service for {url}")

    def console(kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            visit.wrong.append(f"{kind}: {text}")

    visit.page.on("request", lambda sent: request(sent.url))
    visit.page.on("console", lambda said: console(said.type, said.text))
    visit.page.on("pageerror", lambda error: visit.wrong.append(str(error)))
    yield visit
    context.close()
    assert not visit.wrong, visit.wrong


@pytest.fixture
def visit(chromium: Browser, filled: Filled) -> Iterator[Visit]:
    with visiting(chromium, filled.base) as opened:
        yield opened


class TestWalk:
    def test_overview_to_estimate(self, visit: Visit, filled: Filled) -> None:
        page = visit.open("/")
        assert page.title() == "Overview · Priorshift"
        rows = page.get_by_role("table", name="Models with").get_by_role("row")
        assert rows.count() == 5
        assert "Shift detected" in rows.filter(has_text="tickets").inner_text()
        assert page.get_by_role("img", name="outage over the last 24 estimates").is_visible()
        page.get_by_role("link", name="tickets").click()
        visit.drawn(1)
        assert "outage rose from" in page.locator(".lead").inner_text()
        glyphs = visit.glyphs()
        assert glyphs["VArea"] == glyphs["Segment"] == 24
        assert glyphs["Line"] == 72
        page.get_by_text("The numbers as a table").click()
        page.get_by_role("row").nth(1).get_by_role("link").click()
        page.wait_for_url(f"**/estimates/{filled.last['tickets']}")

    def test_monitor(self, visit: Visit) -> None:
        page = visit.open("/monitors/payments", charts=1)
        assert "Alert open" in page.get_by_role("heading", name="Now").inner_text()
        glyphs = visit.glyphs()
        assert glyphs["VArea"] == 25
        assert glyphs["Segment"] == 25
        page.get_by_label("legit", exact=True).check()
        page.wait_for_url("**class=legit&class=fraud**")
        visit.drawn(1)
        assert visit.glyphs()["VArea"] == 50
        page.get_by_label("Segment").select_option("NL")
        page.wait_for_url("**segment=NL**")
        visit.drawn(1)
        page.get_by_label("Range").select_option("24h")
        page.get_by_text("Nothing in this range").wait_for()
        visit.drawn(0)

    def test_acknowledging(self, visit: Visit) -> None:
        page = visit.open("/monitors/payments", charts=1)
        page.get_by_role("button", name="Acknowledge the alert").click()
        page.get_by_text("Alert acknowledged").wait_for()
        visit.drawn(1)

    def test_estimate(self, visit: Visit, filled: Filled) -> None:
        page = visit.open(f"/estimates/{filled.last['tickets']}", charts=4)
        assert re.search(
            r"outage rose from 2\.8 % to \d\.\d % \(\d\.\d–\d\.\d %\); a difference like this "
            r"appears by chance in .*of 1[0,]* batches\.",
            page.locator(".lead").inner_text(),
        )
        glyphs = visit.glyphs()
        assert glyphs["HBar"] == 5
        assert glyphs["Quad"] > 20
        page.get_by_label("Scores of class").select_option("login")
        page.get_by_role("heading", name="Scores of login").wait_for()
        visit.drawn(4)

    def test_version(self, visit: Visit) -> None:
        page = visit.open("/models/tickets/versions/1", charts=2)
        matrix = page.get_by_role("region", name="Confusion matrix")
        assert matrix.get_by_role("cell").count() == 25
        shades = matrix.get_by_role("cell").evaluate_all(
            "(cells) => cells.map((cell) => getComputedStyle(cell).backgroundColor)"
        )
        assert len(set(shades)) >= 4
        assert page.get_by_text("it decides between two classes").is_visible()
        assert visit.glyphs()["Scatter"] >= 8

    def test_trying_a_file(self, visit: Visit, tmp_path: Path) -> None:
        rows = batch(CARDS, np.random.default_rng(9), 1.0, 800)
        path = tmp_path / "cards.csv"
        path.write_text("legit,fraud\n" + "\n".join(f"{a:.9f},{b:.9f}" for a, b in rows))
        page = visit.open("/try?model=cards")
        page.locator("[value=rffm]:disabled").wait_for()
        page.get_by_label("A CSV or Parquet file").set_input_files(path)
        page.get_by_role("button", name="Estimate").click()
        page.get_by_text("4 methods answered").wait_for()
        for place in ("methods-chart", "scores-chart", "trace-chart"):
            page.locator(f"#{place}[data-drawn]").wait_for()
        table = page.locator("#answers-table")
        assert table.get_by_role("row").count() == 6
        assert page.evaluate("document.activeElement.id") == "answers"
        assert visit.glyphs()["Scatter"] >= 4
        with page.expect_download() as download:
            page.get_by_role("button", name="Download").click()
        assert download.value.suggested_filename == "cards-adjusted.csv"
        lines = download.value.path().read_text().splitlines()
        assert len(lines) == 801
        adjusted = np.array([line.split(",") for line in lines[1:]], dtype=float)
        np.testing.assert_allclose(adjusted.sum(axis=1), 1)
        assert adjusted[:, 1].mean() > rows[:, 1].mean()

    def test_dropping_a_file_that_does_not_fit(self, visit: Visit, tmp_path: Path) -> None:
        page = visit.open("/try?model=cards")
        page.locator("[value=rffm]:disabled").wait_for()
        transfer = page.evaluate_handle(
            "() => { const t = new DataTransfer();"
            " t.items.add(new File(['a,b\\n1,2\\n'], 'wrong.csv')); return t; }"
        )
        page.dispatch_event("#drop", "drop", {"dataTransfer": transfer})
        page.get_by_role("button", name="Estimate").click()
        problem = page.locator("#status .problem")
        problem.wait_for()
        assert "legit" in problem.inner_text()
        assert page.locator("#results").is_hidden()
        # What was refused is told by the console too; nothing else may be.
        assert all("422" in wrong for wrong in visit.wrong)
        visit.wrong.clear()

    def test_signing_in_and_out(self, chromium: Browser, sqlite_url: str, tmp_path: Path) -> None:
        with served(create_app(guarded_settings(sqlite_url, tmp_path))) as client:
            base = str(client.base_url).rstrip("/")
            with visiting(chromium, base) as visit:
                page = visit.open("/try")
                assert "/sign-in?next=/try" in page.url
                page.get_by_label("API key").fill(ADMIN)
                page.get_by_role("button", name="Sign in").click()
                page.wait_for_url("**/try")
                assert page.evaluate("document.cookie") == ""
                page.get_by_role("button", name="Sign out").click()
                page.get_by_label("API key").wait_for()
                assert page.context.cookies() == []


class TestRefresh:
    def test_what_is_new_appears_and_focus_stays(self, chromium: Browser, sqlite_url: str) -> None:
        with served(create_app(Settings(database_url=sqlite_url))) as client:
            make(client, "first")
            with visiting(chromium, str(client.base_url).rstrip("/")) as visit:
                visit.page.clock.install()
                page = visit.open("/")
                page.get_by_role("link", name="first").focus()
                make(client, "second")
                page.clock.run_for(16_000)
                page.get_by_role("link", name="second").wait_for()
                assert page.evaluate("document.activeElement.textContent") == "first"

    def test_what_has_not_changed_stays(self, visit: Visit) -> None:
        visit.page.clock.install()
        page = visit.open("/models/cards", charts=1)
        page.get_by_text("The numbers as a table").click()
        page.evaluate("document.querySelector('[data-drawn]').mark = 'the same'")
        page.evaluate("document.querySelectorAll('table').forEach((t) => (t.dataset.old = ''))")
        page.clock.run_for(16_000)
        page.wait_for_selector("table:not([data-old])", state="attached")
        visit.drawn(1)
        assert page.evaluate("document.querySelector('[data-drawn]').mark") == "the same"
        assert page.get_by_role("row").nth(1).is_visible()

    def test_says_when_the_service_is_gone(self, chromium: Browser, sqlite_url: str) -> None:
        with (
            served(create_app(Settings(database_url=sqlite_url))) as client,
            visiting(chromium, str(client.base_url).rstrip("/")) as visit,
        ):
            visit.page.clock.install()
            page = visit.open("/")
            page.route("**/*", lambda route: route.abort())
            page.clock.run_for(16_000)
            page.get_by_text("Not refreshed").wait_for()
            visit.wrong.clear()


def make(client: httpx.Client, name: str) -> None:
    answer = client.post("/v1/models", json={"name": name, "classes": ["a", "b"]})
    assert answer.status_code == 201


def pages(filled: Filled) -> dict[str, int]:
    """Every page of the filled service, with its charts."""
    return {
        "/": 0,
        "/monitors/payments": 1,
        "/monitors/refunds": 0,
        "/models/cards": 1,
        "/models/churn": 0,
        "/models/tickets/versions/1": 2,
        f"/estimates/{filled.last['tickets']}": 4,
        f"/estimates/{filled.last['mail']}": 1,
        "/try": 0,
        "/sign-in": 0,
        "/docs/none": 0,
    }


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_can_be_read_in_light_and_dark_and_on_a_phone(
    chromium: Browser, filled: Filled, scheme: str, width: int
) -> None:
    with visiting(chromium, filled.base, color_scheme=scheme) as visit:
        visit.page.set_viewport_size({"width": width, "height": 844})
        for address, charts in pages(filled).items():
            page = visit.open(address, charts)
            assert page.evaluate(WIDER) == 0, address
            _assert_named(page, address)
            for seen in page.evaluate(CONTRAST):
                needed = 3.0 if seen["size"] >= LARGE_TEXT else 4.5
                assert seen["ratio"] >= needed, (address, scheme, seen)
        # A page that is not there is told by the console.
        assert all("404" in wrong for wrong in visit.wrong)
        visit.wrong.clear()


def _assert_named(page: Page, address: str) -> None:
    """As a screen reader is told: everything that can be used has a name, headings are in order."""
    session = page.context.new_cdp_session(page)
    for node in session.send("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if role in NAMED and not node["ignored"]:
            assert node.get("name", {}).get("value", "").strip(), (address, node)
    session.detach()
    levels = [int(tag[1]) for tag in page.evaluate(HEADINGS)]
    assert levels[0] == 1, address
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), address


NAMED = ("link", "button", "combobox", "checkbox", "textbox", "Date", "image", "table", "region")
HEADINGS = "() => [...document.querySelectorAll('h1,h2,h3,h4')].map((h) => h.tagName)"


def test_hostile_names_run_nowhere(chromium: Browser, sqlite_url: str, tmp_path: Path) -> None:
    evil = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>"]
    with (
        served(create_app(Settings(database_url=sqlite_url))) as client,
        visiting(chromium, str(client.base_url).rstrip("/")) as visit,
    ):
        labels, posteriors = scores(np.random.default_rng(1), 400, 0.2)
        rows = posteriors.tolist()
        known = {"labels": [evil[k] for k in labels], "posteriors": rows, "columns": evil}
        model = {"name": "evil", "classes": evil, "description": evil[0]}
        client.post("/v1/models", json={**model, "source": {"validation": known}})
        batch_ = {"posteriors": rows, "columns": evil, "method": "em"}
        included = {"include": ["trace", "histogram"], "segment": {"k": evil[1]}}
        address = "/v1/models/evil/versions/1/estimates"
        estimate = client.post(address, json={**batch_, **included}).json()["id"]
        visit.page.on("dialog", lambda dialog: visit.wrong.append(dialog.message))
        visit.open("/")
        visit.open("/models/evil", charts=1)
        visit.open("/models/evil/versions/1", charts=2)
        visit.open(f"/estimates/{estimate}", charts=4)
        page = visit.open("/try?model=evil")
        page.locator("[value=rffm]:disabled").wait_for()
        path = tmp_path / f"{'x' * 9}.csv"
        path.write_text(",".join(evil) + "\n" + "\n".join(f"{a},{b}" for a, b in rows))
        page.set_input_files("#file", path)
        page.click("#run")
        page.locator("#trace-chart[data-drawn]").wait_for()
        assert evil[0] in page.locator("#answers-table").inner_text()


def test_by_keyboard_alone(visit: Visit) -> None:
    page = visit.open("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    focused = "document.activeElement"
    while "payments" not in page.evaluate(f"{focused}.textContent.slice(0, 20)"):
        page.keyboard.press("Tab")
        outline = page.evaluate(f"getComputedStyle({focused}).outlineStyle")
        assert outline == "solid"
        assert page.evaluate(f"{focused} !== document.body")


def test_readable_without_scripts(chromium: Browser, filled: Filled) -> None:
    with visiting(chromium, filled.base, java_script_enabled=False) as visit:
        page = visit.page
        page.goto(f"{filled.base}/estimates/{filled.last['cards']}")
        assert page.get_by_role("row", name="fraud").is_visible()
        page.goto(f"{filled.base}/monitors/payments")
        page.get_by_label("Segment").select_option("NL")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**segment=NL**")
        page.get_by_text("The numbers as a table").click()
        assert page.get_by_role("row").count() > 20


class TestReference:
    def test_swagger_shows_every_operation_and_sends_a_request(self, visit: Visit) -> None:
        described = httpx.get(f"{visit.base}/openapi.json", timeout=patience(30)).json()["paths"]
        page = visit.open("/docs")
        operations = page.locator(".opblock")
        operations.first.wait_for()
        assert operations.count() == sum(len(methods) for methods in described.values())
        ready = operations.filter(has=page.locator("[data-path='/readyz']"))
        ready.locator(".opblock-summary-control").click()
        ready.get_by_role("button", name="Try it out").click()
        ready.get_by_role("button", name="Execute").click()
        ready.locator(".live-responses-table").get_by_text("200").wait_for()

    def test_redoc_shows_the_operations(self, visit: Visit) -> None:
        page = visit.open("/redoc")
        page.get_by_text("/v1/models/{name}/versions").first.wait_for(state="attached")
        # It would like to show its maker's logo, which the policy blocks before anything is sent.
        visit.wrong = [said for said in visit.wrong if "//cdn.redoc.ly/" not in said]
