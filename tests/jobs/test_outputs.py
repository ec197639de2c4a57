"""No job writes into another's folder, however its output is spelled, whoever asks, and when."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unicodedata import normalize
from uuid import uuid4

import httpx
import pytest

from app.clock import now
from app.core.errors import InvalidInput
from app.datasets import paths
from app.datasets.listing import Listing
from app.datasets.places import overlap, read_again
from app.datasets.roots import Root
from app.main import create_app
from app.settings import Settings
from models_store.engine import connect
from models_store.jobs import JOB
from models_store.store import Store
from models_store.tables import jobs
from tests.api.sources import register, validation
from tests.conftest import served
from tests.jobs.places import Place, fill, over, placed, settings

ADMIN = "x" * 40
TARGET = {"legit": 0.9, "fraud": 0.1}
ACCENTED = "Zoë"
SAME = [
    "jan/a", "jan/a/", "JAN/A", "jan/A", "Jan/a/", "jan", "Jan/", "jan/a/b", "jan/A/b/c", "JAN/a/b",
]  # fmt: skip
"""What is the place jan/a, holds it or lies in it, on some file system."""
APART = ["jan/ab", "jana/a", "feb", "b", "a/jan", "jan/b/a"]


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> Iterator[Place]:
    with placed(database_url, tmp_path) as found:
        yield found


def adjust(place: Place, output: str, **more: Any) -> httpx.Response:
    return place.ask(kind="adjust", output=output, target_priors=TARGET, **more)


def refused(answer: httpx.Response) -> str:
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json()["errors"]
    assert fault["pointer"] == "/output"
    return str(fault["message"])


def begun(store: Store, output: str, state: str = "running", model: str = "cards") -> str:
    """A job that somebody else is at, as its row says."""
    id, at = uuid4().hex, now()
    asked = {"request": {"kind": "adjust", "model": model, "output": output}, "version": 1}
    with store.write() as unit:
        unit.jobs.add(id, unit.models.get(model).id, "adjust", asked, at)
        if state != "queued":
            unit.jobs.start(id, at)
        if state == "cancelling":
            unit.jobs.cancel(id, at)
        elif state not in ("queued", "running"):
            unit.jobs.end(id, state, {}, at)
    return id


def test_what_a_job_has_written_is_left_alone(place: Place) -> None:
    done = place.done(adjust(place, "jan/a").json()["id"])
    assert done["state"] == "done"
    before = sorted(place.output.rglob("*"))
    for output in SAME:
        message = refused(adjust(place, output))
        assert "holds other files" in message
    assert sorted(place.output.rglob("*")) == before
    for output in APART:
        assert place.done(adjust(place, output).json()["id"])["state"] == "done", output


def test_accents_written_in_two_ways_are_one_name(place: Place) -> None:
    composed, decomposed = normalize("NFC", ACCENTED), normalize("NFD", ACCENTED)
    assert composed != decomposed
    assert place.done(adjust(place, composed).json()["id"])["state"] == "done"
    for output in (decomposed, decomposed.upper(), f"{decomposed}/x"):
        assert "holds other files" in refused(adjust(place, output))


@pytest.mark.parametrize("state", ["queued", "running", "cancelling"])
def test_where_a_job_is_to_write_nobody_else_does(
    place: Place, database_url: str, state: str
) -> None:
    store = Store(connect(database_url))
    id = begun(store, "jan/a", state)
    for output in SAME:
        message = refused(adjust(place, output))
        assert id in message
        assert "is not over" in message
    for output in APART:
        assert adjust(place, output).status_code == 202
    store.close()


@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
def test_what_has_left_nothing_is_free_again(place: Place, database_url: str, state: str) -> None:
    store = Store(connect(database_url))
    begun(store, "jan/a", state)
    assert place.done(adjust(place, "Jan/A").json()["id"])["state"] == "done"
    store.close()


def test_the_own_folder_of_a_job_that_goes_on_is_its_own(place: Place, database_url: str) -> None:
    """The request is refused what the job is not."""
    made = place.done(adjust(place, "jan/a").json()["id"])
    (place.output / "jan/a/_SUCCESS").unlink()
    store = Store(connect(database_url))
    with store.engine.begin() as connection:
        again = jobs.update().where(jobs.c.id == made["id"])
        connection.execute(again.values(state="running", finished_at=None))
    with store.write() as unit:
        unit.tasks.add(JOB, made["id"], {}, now())
    resumed = place.done(made["id"])
    store.close()
    assert (resumed["state"], resumed["files"]) == ("done", made["files"])
    assert (place.output / "jan/a/_SUCCESS").exists()


def test_links_are_no_way_around(place: Place) -> None:
    assert place.done(adjust(place, "jan/a").json()["id"])["state"] == "done"
    os.symlink("jan", place.output / "link")
    os.symlink("jan/a", place.output / "deep")
    os.symlink(place.data, place.output / "out")
    for output in ("link", "link/a", "link/b", "deep", "deep/x", "out", "out/scores"):
        assert "is a link" in refused(adjust(place, output))
    for output in ("Link/a", "DEEP"):
        assert "holds other files" in refused(adjust(place, output))


@pytest.mark.parametrize(
    "output", ["..", "../x", "jan/../jan/a", "jan//a", "./jan", "/jan", "jan\\a", "jan/%2e%2e/a"]
)
def test_ways_up_are_refused(place: Place, output: str) -> None:
    refused(adjust(place, output))


@pytest.mark.parametrize("rounds", [6])
def test_of_two_at_one_moment_one_is_taken(database_url: str, tmp_path: Path, rounds: int) -> None:
    """Of two servers, each with jobs of its own; with the same key it is one job."""
    given = Settings.model_validate(settings(database_url, tmp_path))
    fill(tmp_path / "data")
    with served(create_app(given)) as one, served(create_app(given)) as other:
        register(one, "cards", {"validation": validation(200)})
        for k in range(rounds):
            key = {"Idempotency-Key": f"same{k}"} if k % 3 == 2 else {}
            outputs = (f"m{k}/a", [f"m{k}/a", f"M{k}", f"m{k}/a"][k % 3])
            answers: list[httpx.Response] = []
            start = threading.Barrier(2)

            def ask(client: httpx.Client, output: str) -> None:
                body = {
                    "kind": "adjust",
                    "model": "cards",
                    "dataset": {"path": "scores/*.parquet"},
                    "target_priors": TARGET,
                    "output": output,
                }
                start.wait()  # noqa: B023
                answers.append(client.post("/v1/jobs", json=body, headers=key))  # noqa: B023

            threads = [
                threading.Thread(target=ask, args=both)
                for both in zip((one, other), outputs, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            taken = [answer for answer in answers if answer.status_code == 202]
            assert len(taken) == (2 if key else 1), [answer.text for answer in answers]
            assert len({answer.json()["id"] for answer in taken}) == 1
            assert over(one, taken[0].json()["id"])["state"] == "done"


def test_another_tenants_output_is_refused_and_not_told(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "admin-key").write_text(ADMIN)
    more = {"key_secret": "s" * 40, "admin_key_file": tmp_path / "admin-key"}
    given = Settings.model_validate(settings(database_url, tmp_path, **more))
    fill(tmp_path / "data")
    store = Store(connect(database_url))
    with served(create_app(given)) as client:
        client.headers["Authorization"] = f"Bearer {ADMIN}"
        for model in ("cards", "loans"):
            register(client, model, {"validation": validation(200)})
        body = {"name": "tenant", "scopes": ["estimate"], "models": ["loans"], "roots": None}
        made = client.post("/v1/api-keys", json=body).json()
        id = begun(store, "jan/a")
        asked = {
            "kind": "adjust",
            "model": "loans",
            "dataset": {"path": "scores/*.parquet"},
            "target_priors": TARGET,
        }
        headers = {"Authorization": f"Bearer {made['key']}"}
        for output in SAME:
            answer = client.post("/v1/jobs", json={**asked, "output": output}, headers=headers)
            assert "another job" in refused(answer)
            assert id not in answer.text
            assert "cards" not in answer.text
        assert id in refused(client.post("/v1/jobs", json={**asked, "output": "JAN"}))
    store.close()


PATHS = [
    "scores", "scores/", "scores/*.parquet", "*/*.parquet", "*", "**", "**/*.parquet", "scores/**",
    "scores/**/x/*.parquet", "*/", "sc[o]res/x", "scores/x/", "scores/part-00000.parquet", "_h/**",
    "s*/_h/", "scores/_h/*", "**/_*/*.parquet",
]  # fmt: skip
PLACES = ["scores", "scores/x", "scores/x/y", "other", "x", "scores/_h", "_h", "_h/x"]


@pytest.mark.parametrize("path", PATHS)
def test_what_would_be_read_again_is_what_a_listing_finds(tmp_path: Path, path: str) -> None:
    for k, place in enumerate(PLACES):
        root = Root("", str(tmp_path / str(k)))
        file = tmp_path / str(k) / place / "part-00000.parquet"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
        parsed = paths.parse(path, "")
        try:
            found = Listing(root.folders, (".parquet",), "").files(parsed)
        except InvalidInput:
            found = []
        segments = tuple(place.split("/"))
        assert read_again(root, segments, root, parsed) == bool(found), place
        for depth in range(len(segments)):
            inner = Root("", str(Path(root.where, *segments[:depth])))
            assert read_again(inner, segments[depth:], root, parsed) == bool(found), place


def test_a_job_does_not_write_into_what_it_reads(database_url: str, tmp_path: Path) -> None:
    fill(tmp_path / "data")
    os.symlink(tmp_path / "data", tmp_path / "same")
    more = {"output_root": str(tmp_path / "same")}
    given = Settings.model_validate(settings(database_url, tmp_path) | more)
    with served(create_app(given)) as client:
        register(client, "cards", {"validation": validation(200)})
        place = Place(client, tmp_path / "data", tmp_path / "same")
        inside = adjust(place, "scores/adjusted", dataset={"path": "scores/"})
        assert "lies in the data set" in refused(inside)
        beside = adjust(place, "scores/adjusted", dataset={"path": "scores/*.parquet"})
        assert place.done(beside.json()["id"])["state"] == "done"


def test_places_overlap_whichever_comes_first() -> None:
    for output in [*SAME, *APART]:
        place = tuple(output.rstrip("/").split("/"))
        assert overlap(place, ("jan", "a")) == overlap(("jan", "a"), place) == (output in SAME)
