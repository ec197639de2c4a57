"""Adjusted posteriors on disk and in object storage: whole, once, and the same again."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.core.arrays import AnyFloats
from app.core.errors import InvalidInput
from app.core.prevalence.adjustment.posteriors import adjust
from app.datasets import plan
from app.datasets.adjusted import Output, WrittenFile
from app.datasets.dataset import Asked, Resolved, resolve
from app.datasets.roots import Roots
from tests.datasets.test_dataset import CLASSES, matrix, table, write

SOURCE, TARGET = np.array([0.9, 0.1]), np.array([0.7, 0.3])


def shifted(rows: AnyFloats, target: Any = TARGET) -> AnyFloats:
    return adjust(rows.astype(np.float64), SOURCE, target)[0]


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Resolved:
    """Three partitions of a file, and one of a file without rows."""
    monkeypatch.setattr(plan, "PARTITION_ROWS", 400)
    write(tmp_path / "data" / "a.parquet", table(1000), row_group_size=400)
    write(tmp_path / "data" / "b.parquet", table(0))
    (tmp_path / "out").mkdir()
    return resolved(tmp_path, keys=("id", "country"), filter="amount > 10")


def resolved(tmp_path: Path, **asked: Any) -> Resolved:
    return resolve(Roots.of([str(tmp_path / "data")]), Asked("*.parquet", **asked), CLASSES)


def output(tmp_path: Path, found: Resolved, path: str = "jan/x", **said: Any) -> Output:
    given = {"job": "j1", "digest": found.digest, **said}
    return Output.of(str(tmp_path / "out"), path, given["job"], given["digest"], found)


def written(out: Output, found: Resolved) -> list[WrittenFile]:
    return [out.write(k, p, shifted) for k, p in enumerate(found.partitions)]


def digests(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_keys_and_adjusted_posteriors_of_each_partition(tmp_path: Path, found: Resolved) -> None:
    out = output(tmp_path, found)
    out.prepare()
    done = written(out, found)
    out.finish(done)
    rows = table(1000)
    rows = rows.filter(pa.compute.greater(rows.column("amount"), 10))
    read = [pq.read_table(tmp_path / "out/jan/x" / one.name) for one in done]
    together = pa.concat_tables(read)
    assert together.column_names == ["id", "country", "legit", "fraud"]
    assert together.column("id").equals(rows.column("id"))
    assert together.column("country").equals(rows.column("country"))
    np.testing.assert_allclose(matrix(together), shifted(matrix(rows)), rtol=1e-14)
    said = json.loads((tmp_path / "out/jan/x/_SUCCESS").read_text())
    assert said["rows"] == rows.num_rows
    assert [(f["name"], f["rows"]) for f in said["files"]] == [
        (f"part-{k:05d}.parquet", r.num_rows) for k, r in enumerate(read)
    ]
    assert read[-1].num_rows == 0
    assert all(one.fresh for one in done)


def test_a_rerun_writes_nothing_twice_and_the_same_again(tmp_path: Path, found: Resolved) -> None:
    first = written(output(tmp_path, found), found)
    folder = tmp_path / "out/jan/x"
    before, times = digests(folder), {f: f.stat().st_mtime_ns for f in folder.iterdir()}
    (folder / "part-00001.parquet").unlink()
    out = output(tmp_path, found)
    out.prepare()
    again = written(out, found)
    assert [one.fresh for one in again] == [False, True, False, False]
    assert [one.counts for one in again] == [one.counts for one in first]
    assert digests(folder) == before
    kept = [f for f in folder.iterdir() if f.name != "part-00001.parquet"]
    assert all(f.stat().st_mtime_ns == times[f] for f in kept)
    elsewhere = output(tmp_path, found, "other")
    written(elsewhere, found)
    assert digests(tmp_path / "out/other") == before


def test_skipped_rows_are_remembered_in_the_file(tmp_path: Path, found: Resolved) -> None:
    rows = table(10)
    values = matrix(rows)
    values[4] = 2.0
    write(tmp_path / "data/a.parquet", pa.table(dict(zip(CLASSES, values.T, strict=True))))
    (tmp_path / "data/b.parquet").unlink()
    found = resolved(tmp_path, on_error="skip")
    out = output(tmp_path, found)
    fresh = out.write(0, found.partitions[0], shifted)
    remembered = out.written(0)
    assert remembered is not None
    assert remembered.counts == fresh.counts
    assert fresh.counts.skipped_rows == 1
    assert fresh.counts.messages[0].startswith("a.parquet, row group 0, row 4: ")


def test_an_error_leaves_no_file(tmp_path: Path, found: Resolved) -> None:
    out = output(tmp_path, found)
    out.prepare()

    def failing(rows: AnyFloats) -> AnyFloats:
        raise InvalidInput.at("", "no")

    with pytest.raises(InvalidInput):
        out.write(0, found.partitions[0], failing)
    assert list((tmp_path / "out/jan/x").iterdir()) == []


def test_folders_of_others_are_left_alone(tmp_path: Path, found: Resolved) -> None:
    out = output(tmp_path, found)
    written(out, found)
    for other in ({"job": "j2"}, {"digest": "other"}):
        with pytest.raises(InvalidInput, match="another job's part-00000"):
            output(tmp_path, found, **other).prepare()
        with pytest.raises(InvalidInput, match="another job's part-00001"):
            output(tmp_path, found, **other).write(1, found.partitions[1], shifted)
    (tmp_path / "out/mine").mkdir()
    (tmp_path / "out/mine/notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match=r"holds other files, 'notes.txt'"):
        output(tmp_path, found, "mine").prepare()
    (tmp_path / "out/bare").mkdir()
    write(tmp_path / "out/bare/part-00000.parquet", table(3))
    with pytest.raises(InvalidInput, match="another job's"):
        output(tmp_path, found, "bare").prepare()


@pytest.mark.parametrize(
    "path",
    [
        "",
        "..",
        "../x",
        "/x",
        "x/../y",
        "x//y",
        "~",
        "x*",
        "x/[a]",
        "**",
        "s3://b/x",
        "x\\y",
        "%2e%2e/x",
        "x\x00",
        ".hidden",
        "x/_temporary",
        "$HOME",
        "lake:x",
        "link",
        "link/x",
        "file",
    ],
)
def test_hostile_places_are_refused(tmp_path: Path, found: Resolved, path: str) -> None:
    (tmp_path / "outside").mkdir()
    os.symlink("../outside", tmp_path / "out/link")
    (tmp_path / "out/file").write_text("")
    with pytest.raises(InvalidInput) as caught:
        output(tmp_path, found, path).prepare()
    assert caught.value.faults[0].pointer == "/output"
    assert str(tmp_path) not in caught.value.faults[0].message
    assert list((tmp_path / "outside").iterdir()) == []


def test_nothing_is_written_without_a_root_or_with_two_columns_of_one_name(
    tmp_path: Path, found: Resolved
) -> None:
    with pytest.raises(InvalidInput, match="PRIORSHIFT_OUTPUT_ROOT"):
        Output.of(None, "x", "j1", "", found)
    both = resolved(tmp_path, keys=("legit",))
    with pytest.raises(InvalidInput, match="a key and a class"):
        output(tmp_path, both)


def test_float32_stays_float32(tmp_path: Path, found: Resolved) -> None:
    write(tmp_path / "data/a.parquet", table(100, kind=np.float32))
    (tmp_path / "data/b.parquet").unlink()
    single = resolved(tmp_path)
    written(output(tmp_path, single), single)
    read = pq.read_table(tmp_path / "out/jan/x/part-00000.parquet")
    assert read.schema.types == [pa.float32()] * 2


def test_object_storage(tmp_path: Path, found: Resolved) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    out = Output.of("memory://results", "jan", "j1", found.digest, found)
    out.prepare()
    first = written(out, found)
    out.finish(first)
    written(output(tmp_path, found), found)
    for one in first:
        local = (tmp_path / "out/jan/x" / one.name).read_bytes()
        assert memory.cat_file(f"/results/jan/{one.name}") == local
    memory.pipe_file("/results/jan/part-00001.parquet", local[: len(local) // 2])
    out.prepare()
    assert [one.fresh for one in written(out, found)] == [False, True, False, False]
    with pytest.raises(InvalidInput, match="another job's"):
        Output.of("memory://results", "jan", "j2", found.digest, found).prepare()


SLOW = """
import sys, time
from pathlib import Path
from app.datasets import plan
from tests.datasets.test_adjusted import output, resolved, shifted
plan.PARTITION_ROWS = 400
tmp = Path(sys.argv[1])
found = resolved(tmp, keys=("id", "country"), filter="amount > 10")
out = output(tmp, found)
out.prepare()
for k, partition in enumerate(found.partitions):
    def slow(rows):
        if k == 1:
            print("writing", flush=True)
            time.sleep(600)
        return shifted(rows)
    out.write(k, partition, slow)
"""


def test_a_writer_that_is_killed_leaves_whole_files_only(tmp_path: Path, found: Resolved) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "writing\n"
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    folder = tmp_path / "out/jan/x"
    left = sorted(file.name for file in folder.iterdir())
    assert left[-1] == "part-00000.parquet"
    assert [name.startswith(".part-00001.parquet.") for name in left] == [True, False]
    out = output(tmp_path, found)
    out.prepare()
    done = written(out, found)
    assert [one.fresh for one in done] == [False, True, True, True]
    out.finish(done)
    again = output(tmp_path, found, "again")
    again.finish(written(again, found))
    assert digests(folder) == digests(tmp_path / "out/again")


def test_two_writers_of_one_partition_do_not_disturb_each_other(
    tmp_path: Path, found: Resolved
) -> None:
    out = output(tmp_path, found)
    out.prepare()

    def nested(rows: AnyFloats) -> AnyFloats:
        out.write(0, found.partitions[0], shifted)
        return shifted(rows)

    out.write(0, found.partitions[0], nested)
    alone = output(tmp_path, found, "alone")
    alone.write(0, found.partitions[0], shifted)
    assert digests(tmp_path / "out/jan/x") == digests(tmp_path / "out/alone")


def test_outputs_travel_to_workers(tmp_path: Path, found: Resolved) -> None:
    import pickle

    out = output(tmp_path, found)
    sent: Any = pickle.loads(pickle.dumps((out, found.partitions[0], partial(shifted))))
    assert sent[0].write(0, sent[1], sent[2]).fresh
    assert not out.write(0, found.partitions[0], shifted).fresh
