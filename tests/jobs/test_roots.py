"""Which data sets a key may read, and where its jobs may write."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.main import create_app
from app.settings import Settings
from models_store.engine import connect
from models_store.store import Store
from tests.api.sources import validation
from tests.api.test_access import ADMIN, Guarded, bearer, guarded_settings, stored
from tests.conftest import served
from tests.jobs.places import fill, over

ROOTS = ("lake", "day", "vault")


@pytest.fixture
def guarded(database_url: str, tmp_path: Path) -> Iterator[Guarded]:
    """A service with three roots, each with the same files."""
    for name in ROOTS:
        fill(tmp_path / name)
    (tmp_path / "out").mkdir()
    given = guarded_settings(database_url, tmp_path).model_dump(exclude_unset=True)
    roots = [f"{name}={tmp_path / name}" for name in ROOTS]
    settings = Settings.model_validate(
        {**given, "data_roots": roots, "output_root": str(tmp_path / "out")}
    )
    store = Store(connect(database_url))
    with served(create_app(settings)) as client:
        found = Guarded(client, store, settings)
        body = {
            "name": "cards",
            "classes": ["legit", "fraud"],
            "source": {"validation": validation(2000)},
        }
        assert client.post("/v1/models", json=body, headers=bearer(ADMIN)).is_success
        yield found
    store.close()


def ask(guarded: Guarded, key: str, path: str, **more: Any) -> httpx.Response:
    body = {"kind": "estimate", "model": "cards", "dataset": {"path": path}, **more}
    return guarded.client.post("/v1/jobs", json=body, headers=bearer(key))


def opened(guarded: Guarded, key: str) -> set[str]:
    """The roots whose data sets this key's jobs may read."""
    found = {name: ask(guarded, key, f"{name}:scores/*.parquet") for name in ROOTS}
    assert {answer.status_code for answer in found.values()} <= {202, 403, 422}
    return {name for name, answer in found.items() if answer.status_code == 202}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ROOTS),
        ({"roots": None}, ROOTS),
        ({"roots": []}, ()),
        ({"roots": ["lake"]}, ["lake"]),
        ({"models": ["cards"]}, ()),
        ({"models": ["cards"], "roots": None}, ROOTS),
        ({"models": ["cards"], "roots": ["day", "gone"]}, ["day"]),
    ],
)
def test_a_key_opens_its_roots(
    guarded: Guarded, given: dict[str, Any], expected: Sequence[str]
) -> None:
    body = {"name": "k", "scopes": ["read", "estimate"], **given}
    made = guarded.client.post("/v1/api-keys", json=body, headers=bearer(ADMIN)).json()
    assert opened(guarded, made["key"]) == set(expected)
    shown = guarded.client.get(f"/v1/api-keys/{made['id']}", headers=bearer(ADMIN)).json()
    assert shown["roots"] == made["roots"]
    silent = given == {"models": ["cards"]}
    assert [w["code"] for w in made["warnings"]] == (["no-data-roots"] if silent else [])


def test_keys_from_before_open_what_they_opened(guarded: Guarded) -> None:
    key = stored(guarded, models=("cards",))
    assert opened(guarded, key) == set(ROOTS)
    assert ask(guarded, key, "lake:scores", kind="adjust", output="anywhere").status_code == 202


def test_other_roots_are_as_unknown_ones(guarded: Guarded) -> None:
    key = guarded.key("estimate", models=["cards"], roots=["day", "lake"])
    answers = [ask(guarded, key, f"{name}:scores").json() for name in ("vault", "never")]
    texts = [str(a["errors"]).replace("vault", "never") for a in answers]
    assert texts[0] == texts[1]
    assert "there are lake, day" in texts[0]
    assert "vault" not in ask(guarded, key, "scores/a.parquet").text
    none = guarded.key("estimate", models=["cards"])
    for path in ("scores", "vault:scores", "never:scores"):
        answer = ask(guarded, none, path)
        assert answer.status_code == 403
        assert not any(name in answer.text.replace(path, "") for name in ROOTS)


def test_the_job_itself_reads_no_other(guarded: Guarded) -> None:
    """Of one root it need not say the name, and finds that one when it runs."""
    key = guarded.key("read", "estimate", models=["cards"], roots=["day"])
    made = ask(guarded, key, "scores/*.parquet")
    assert made.status_code == 202, made.text
    (Path(guarded.settings.data_roots[0].partition("=")[2]) / "scores").rename(
        Path(guarded.settings.data_roots[0].partition("=")[2]) / "moved"
    )
    with httpx.Client(base_url=guarded.client.base_url, headers=bearer(key)) as client:
        done = over(client, made.json()["id"])
    assert done["state"] == "done", done
    assert done["rows"] == 1100


def test_what_a_key_writes_lies_below_its_model(guarded: Guarded, tmp_path: Path) -> None:
    key = guarded.key("read", "estimate", models=["cards"], roots=["day"])
    for output in ("other/a", "cards", "card/a", "cards/../other", "cards-2/a", "../cards/a"):
        answer = ask(guarded, key, "day:scores", kind="adjust", output=output)
        assert answer.status_code == 422, output
        assert answer.json()["errors"][0]["pointer"] == "/output"
    made = ask(guarded, key, "day:scores", kind="adjust", output="cards/2026-01")
    with httpx.Client(base_url=guarded.client.base_url, headers=bearer(key)) as client:
        assert over(client, made.json()["id"])["state"] == "done"
    assert (tmp_path / "out" / "cards" / "2026-01" / "_SUCCESS").exists()


@pytest.mark.parametrize("roots", [["UPPER"], ["a", "a"], [""], "lake", [1]])
def test_wrong_roots_are_refused(guarded: Guarded, roots: Any) -> None:
    body = {"name": "k", "scopes": ["read"], "roots": roots}
    answer = guarded.client.post("/v1/api-keys", json=body, headers=bearer(ADMIN))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"].startswith("/roots")
