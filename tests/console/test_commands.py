"""The commands against a real server process, and in place."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from tests.api.sources import CLASSES, scores
from tests.end_to_end.processes import free_port, ready
from tests.patience import patience

PRIORSHIFT = [sys.executable, "-m", "app.cli"]


def table(path: Path, rows: int, share: float, seed: int, label: str | None = "truth") -> Path:
    """A CSV file of scores."""
    labels, posteriors = scores(np.random.default_rng(seed), rows, share)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*CLASSES, *([label] if label else [])])
        for row, code in zip(posteriors.tolist(), labels, strict=True):
            writer.writerow([*row, *([CLASSES[code]] if label else [])])
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console")
    table(folder / "scores.csv", 400, 0.2, 1)
    table(folder / "same.csv", 400, 0.2, 2, None)
    table(folder / "shifted.csv", 400, 0.6, 3)
    return folder


@pytest.fixture(scope="module")
def remote(sqlite_template: Path, place: Path) -> Iterator[dict[str, str]]:
    """Settings of the commands for a server process that needs a key."""
    database = place / "remote.db"
    database.write_bytes(sqlite_template.read_bytes())
    key = place / "key"
    key.write_text("k" * 40)
    port = free_port()
    settings = {
        **os.environ,
        "PRIORSHIFT_DATABASE_URL": f"sqlite:///{database}",
        "PRIORSHIFT_ADMIN_KEY_FILE": str(key),
    }
    command = [*PRIORSHIFT, "serve", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(command, env=settings)
    url = f"http://127.0.0.1:{port}"
    try:
        ready(url, process)
        given = {**os.environ, "PRIORSHIFT_URL": url, "PRIORSHIFT_KEY": "k" * 40}
        run(given, "register", "known", place / "scores.csv", "--label", "truth")
        yield given
    finally:
        process.terminate()
        process.wait(timeout=patience(30))


def run(given: dict[str, str], *words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PRIORSHIFT, *map(str, words)],
        env={**given, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(120),
    )


class TestRemote:
    def test_register_estimate_and_look_back(self, remote: dict[str, str], place: Path) -> None:
        made = run(remote, "register", "cards", place / "scores.csv", "--label", "truth")
        assert made.returncode == 0, made.stderr
        assert "cards version 1: bcts, 400 rows" in made.stdout
        again = run(
            remote, "register", "cards", place / "scores.csv", "--label", "truth",
            "--calibration", "temperature", "--json",
        )  # fmt: skip
        assert json.loads(again.stdout)["version"] == 2
        out = place / "adjusted.parquet"
        found = run(
            remote, "estimate", "cards", place / "shifted.csv", "--out", out, "--version", "1",
            "--fail-on-shift", "--json",
        )  # fmt: skip
        assert found.returncode == 3, found.stderr
        shares = {row["class"]: row["estimate"] for row in json.loads(found.stdout)["prevalence"]}
        assert shares["fraud"] == pytest.approx(0.6, abs=0.08)
        adjusted = pyarrow.parquet.read_table(out)
        assert adjusted.column_names == CLASSES
        assert adjusted.num_rows == 400
        assert np.mean(adjusted["fraud"]) == pytest.approx(shares["fraud"], abs=0.01)
        same = run(remote, "estimate", "cards", place / "same.csv", "--fail-on-shift")
        assert same.returncode == 0
        assert "not detected" in same.stdout
        told = run(remote, "history", "cards")
        assert told.stdout.count("400") == 2
        assert len(json.loads(run(remote, "history", "cards", "--json").stdout)) == 2

    def test_labels_and_predictions_by_column(self, remote: dict[str, str], place: Path) -> None:
        found = run(
            remote, "estimate", "known", place / "shifted.csv", "--labels", "truth", "--json"
        )
        assert json.loads(found.stdout)["labelled"] == 400
        counted = run(
            remote, "estimate", "known", place / "shifted.csv", "--predictions", "truth", "--json"
        )
        assert json.loads(counted.stdout)["method"] == "mle"

    def test_labels_are_classes_of_the_same_spelling(
        self, remote: dict[str, str], place: Path
    ) -> None:
        """0 and 1, as CSV writes them with quotes and without, and as numbers of Parquet."""
        labels, posteriors = scores(np.random.default_rng(4), 120, 0.4)
        columns = {"0": posteriors[:, 0], "1": posteriors[:, 1], "truth": labels}
        paths = [place / name for name in ("bits.csv", "bits-quoted.csv", "bits.parquet")]
        pyarrow.parquet.write_table(pyarrow.table(columns), paths[2])
        for path, mark in zip(paths, ("", '"'), strict=False):
            with path.open("w") as file:
                file.write("0,1,truth\n")
                for row, label in zip(posteriors.tolist(), labels, strict=True):
                    file.write(f"{row[0]},{row[1]},{mark}{label}{mark}\n")
        found = [
            json.loads(run(remote, "register", "bits", path, "--label", "truth", "--json").stdout)
            for path in paths
        ]
        assert [version["version"] for version in found] == [1, 1, 1]

    def test_compare(self, remote: dict[str, str], place: Path) -> None:
        run(remote, "register", "compared", place / "scores.csv", "--label", "truth")
        found = run(remote, "compare", "compared", place / "shifted.csv")
        assert found.returncode == 0, found.stderr
        for method in ("mle", "acc-qp", "pacc-qp", "cc"):
            assert method in found.stdout
        assert json.loads(run(remote, "history", "compared", "--json").stdout) == []

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["estimate", "nobody", "same.csv"], "there is no model named nobody"),
            (["estimate", "known", "none.csv"], "No such file"),
            (["estimate", "known", "key"], "files end in"),
            (["register", "new", "same.csv", "--label", "truth"], "there is no column 'truth'"),
            (["register", "new", "scores.csv", "--label", "legit"], "no column of that name"),
            (["history", "nobody"], "there is no model named nobody"),
            (["compare", "nobody", "same.csv"], "there is no model named nobody"),
            (["estimate", "known", "same.csv", "--method", "magic"], "is not a method"),
        ],
    )
    def test_mistakes_are_status_2_and_one_line(
        self, remote: dict[str, str], place: Path, words: list[str], told: str
    ) -> None:
        paths = [str(place / word) if "." in word or word == "key" else word for word in words]
        found = run(remote, *paths)
        assert found.returncode == 2, found.stdout
        assert told in " ".join(found.stderr.split())
        assert "Traceback" not in found.stderr

    def test_nobody_answers(self, place: Path) -> None:
        given = {**os.environ, "PRIORSHIFT_URL": f"http://127.0.0.1:{free_port()}"}
        found = run(given, "history", "cards")
        assert found.returncode == 1
        assert "no answer" in found.stderr

    def test_a_wrong_key(self, remote: dict[str, str]) -> None:
        found = run({**remote, "PRIORSHIFT_KEY": "wrong"}, "history", "cards")
        assert found.returncode == 2
        assert "key" in found.stderr


def test_in_place_says_the_same(remote: dict[str, str], place: Path) -> None:
    given: dict[str, Any] = {
        **os.environ,
        "PRIORSHIFT_DATABASE_URL": f"sqlite:///{place / 'local.db'}",
    }
    answers = []
    for settings, local in ((remote, []), (given, ["--local"])):
        made = run(settings, "register", "both", place / "scores.csv", "--label", "truth", *local)
        assert made.returncode == 0, made.stderr
        found = run(settings, "estimate", "both", place / "shifted.csv", "--json", *local)
        answers.append(json.loads(found.stdout)["prevalence"])
    assert answers[0] == answers[1]
    assert "both" not in run(given, "history", "both", "--local").stderr


def test_in_place_needs_a_key_where_the_database_has_keys(
    remote: dict[str, str], place: Path
) -> None:
    given = {
        **os.environ,
        "PRIORSHIFT_DATABASE_URL": f"sqlite:///{place / 'remote.db'}",
        "PRIORSHIFT_ADMIN_KEY_FILE": str(place / "key"),
    }
    refused = run(given, "history", "known", "--local")
    assert refused.returncode == 2
    assert "needs a key" in refused.stderr
    opened = run({**given, "PRIORSHIFT_KEY": "k" * 40}, "history", "known", "--local")
    assert opened.returncode == 0, opened.stderr
