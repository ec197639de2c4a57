"""A service with a folder of data sets, and jobs that are waited for."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.core.arrays import Floats
from app.main import create_app
from app.settings import Settings
from tests.api.sources import CLASSES, register, scores, validation
from tests.conftest import served
from tests.patience import Deadline


@dataclass(frozen=True)
class Place:
    """A service, and where its data sets and its output are."""

    client: httpx.Client
    data: Path
    output: Path

    def ask(self, **given: Any) -> httpx.Response:
        body = {"model": "cards", "dataset": {"path": "scores/*.parquet"}, **given}
        return self.client.post("/v1/jobs", json=body)

    def job(self, **given: Any) -> dict[str, Any]:
        """A job that was taken on."""
        answer = self.ask(**given)
        assert answer.status_code == 202, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def done(self, id: str, seconds: float = 60.0) -> dict[str, Any]:
        """The job once it is over."""
        return over(self.client, id, seconds)


def over(client: httpx.Client, id: str, seconds: float = 60.0) -> dict[str, Any]:
    deadline = Deadline(seconds)
    while True:
        job: dict[str, Any] = client.get(f"/v1/jobs/{id}").json()
        if job["finished_at"] is not None:
            return job
        assert not deadline.over(), job
        time.sleep(0.02)


def write(path: Path, posteriors: Floats, single: bool = False, **more: Sequence[Any]) -> None:
    """A Parquet file of posteriors, and other columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = np.float32 if single else np.float64
    columns = {name: posteriors[:, k].astype(kind) for k, name in enumerate(CLASSES)}
    pq.write_table(pa.table({**columns, **more}), path)


def settings(url: str, folder: Path, **more: Any) -> dict[str, Any]:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "out").mkdir(exist_ok=True)
    roots = {"data_roots": [str(folder / "data")], "output_root": str(folder / "out")}
    return {"database_url": url, **roots, **more}


@contextmanager
def placed(url: str, folder: Path, **more: Any) -> Iterator[Place]:
    """A service on this database, with a model and three files of scores."""
    given = Settings.model_validate(settings(url, folder, **more))
    with served(create_app(given)) as client:
        register(client, "cards", {"validation": validation(2000)})
        fill(folder / "data")
        yield Place(client, folder / "data", folder / "out")


def fill(data: Path) -> Floats:
    """Three files; all their rows."""
    parts = []
    for k, (rows, share) in enumerate(((400, 0.3), (0, 0.3), (700, 0.5))):
        posteriors = scores(np.random.default_rng(k), rows, share)[1]
        countries = ["BE" if i % 3 else "NL" for i in range(rows)]
        write(
            data / "scores" / f"part{k}.parquet",
            posteriors,
            country=pa.array(countries, pa.string()),
        )
        parts.append(posteriors)
    return np.concatenate(parts)
