"""A job whose files are read on a Dask cluster, and the same job here."""

import shutil
from pathlib import Path

import pytest

from app.engines.cluster import Cluster
from app.jobs import runner
from tests.engines.test_cluster import Dask
from tests.jobs.places import placed


def test_a_cluster_answers_as_this_machine_does(
    tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MOST_ATTEMPTS", 1)
    _, *others = Cluster.__init__.__defaults__ or ()
    monkeypatch.setattr(Cluster.__init__, "__defaults__", (2.0, *others))
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    shutil.copy(sqlite_template, tmp_path / "jobs.db")
    dask = Dask(tmp_path)
    try:
        dask.work(2)
        with placed(url, tmp_path, dask_scheduler=dask.address) as place:
            there = place.done(place.job(kind="estimate", group_by=["country"])["id"])
            dask.stop()
            lost = place.done(place.job(kind="estimate")["id"])
            found = [
                place.client.get(f"/v1/estimates/{item['estimate']}").json()
                for item in there["estimates"]
            ]
    finally:
        dask.stop()
    assert (there["state"], there["rows"]) == ("done", 1100)
    assert lost["state"] == "failed"
    assert "scheduler" in lost["errors"][0]["message"]
    (tmp_path / "jobs.db").unlink()
    shutil.copy(sqlite_template, tmp_path / "jobs.db")
    with placed(url, tmp_path) as place:
        here = place.done(place.job(kind="estimate", group_by=["country"])["id"])
        for item, other in zip(here["estimates"], found, strict=True):
            mine = place.client.get(f"/v1/estimates/{item['estimate']}").json()
            shares = [share["estimate"] for share in mine["prevalence"]]
            assert shares == pytest.approx([s["estimate"] for s in other["prevalence"]], abs=1e-6)
