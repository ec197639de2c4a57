"""A small, seeded version of the benchmark on two data sets of scikit-learn."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from benchmarks.thesis import paper, tables
from benchmarks.thesis.__main__ import trials
from benchmarks.thesis.datasets import DataSet, Listed, load, read
from benchmarks.thesis.experiment import Plan, Trial, repetition
from benchmarks.thesis.methods import OWN_ROWS, UNTRANSPOSED, solvable
from benchmarks.thesis.protocol import FOLDS, Scores, folds, halve, remove
from benchmarks.thesis.tables import Cell, mean

SETS = load(None, ["wine", "breast_cancer"])
PLAN = Plan({"logistic": 2, "forest": 2, "one-vs-rest": 1}, (0.1, 0.5), trees=10)


@pytest.fixture(scope="module")
def found() -> list[Trial]:
    return list(trials(SETS, PLAN))


class TestRun:
    def test_is_complete(self, found: list[Trial]) -> None:
        keys = {(t.data, t.learner, t.beta, t.run) for t in found}
        assert len(found) == len(keys) == 2 * 2 * (2 + 2 + 1)
        for trial in found:
            binary = trial.data == "breast_cancer"
            both = {"raw", "cc", "acc", "acc-qp", UNTRANSPOSED, "em", "em-stop", OWN_ROWS}
            expected = both | {"oracle-bayes", "default"} | ({"cde"} if binary else set())
            assert set(trial.quality) == expected
            assert trial.quality["oracle-bayes"].total == 0
            assert 0.5 < trial.oracle.macro <= 1

    def test_is_reproducible(self, found: list[Trial]) -> None:
        again = list(repetition(SETS[0], PLAN, 1))
        assert again == [t for t in found if t.data == SETS[0].name and t.run == 1]

    @pytest.mark.parametrize("learner", ["logistic", "forest"])
    def test_correcting_beats_counting_at_strong_shift(
        self, found: list[Trial], learner: str
    ) -> None:
        strong = [t for t in found if t.learner == learner and t.beta == 0.1]
        error = {m: Cell.of(strong, mean(m)).mean for m in ("raw", "cc", "acc-qp", "default")}
        assert error["default"] < 0.5 * error["cc"]
        assert error["default"] < 0.5 * error["acc-qp"]
        assert max(error["cc"], error["acc-qp"]) < 0.5 * error["raw"]

    def test_no_new_run_when_time_is_up(self) -> None:
        assert list(trials(SETS, PLAN, most_seconds=0)) == []

    def test_tables(self, found: list[Trial]) -> None:
        text = tables.chapter(found, "logistic", SETS)
        for number in ("7.2", "7.3", "7.4", "7.7", "7.9"):
            assert f"Table {number}, logistic" in text
        assert text.count("| 0.1 |") == text.count("| 0.5 |") == text.count("| mean |") == 6
        assert "(0.07731)" in text
        assert "nan" not in text
        assert "±" not in tables.by_set(found, "one-vs-rest")
        assert tables.chapter(found, "none", SETS) == ""
        assert "default is closer" in tables.summary(found, "forest")
        assert tables.linear_systems(found).count("| forest |") == 2
        used = tables.sets_used(SETS, found, PLAN)
        assert "beside 8 that were used" in used
        assert "| wine | 178 | 13 | 3 | 89 | 0 | 0 |" in used
        assert "not used here: abalone_sex" in used


class TestPaper:
    def test_columns_have_the_means_of_table_7_5(self) -> None:
        printed = {
            ("logistic", "em"): 0.0379,
            ("logistic", "em-stop"): 0.0109,
            ("logistic", "base"): 0.0237,
            ("forest", "em"): 0.0051,
            ("forest", "em-stop"): 0.0060,
            ("forest", "base"): 0.0238,
        }
        for (learner, method), value in printed.items():
            found = paper.TABLE_7_3.mean(learner, method, paper.BETAS)
            assert found == pytest.approx(value, abs=6e-5)

    def test_only_what_is_printed(self) -> None:
        assert paper.TABLE_7_3.mean("one-vs-rest", "em", [0.1]) == 0.07731
        assert paper.TABLE_7_3.mean("logistic", "default", [0.1]) is None
        assert paper.TABLE_7_3.mean("logistic", "em", [0.1, 0.15]) is None


class TestProtocol:
    def test_halves_are_stratified_and_capped(self) -> None:
        wine = SETS[0]
        halves = halve(wine, np.random.default_rng(1), 60)
        assert (len(halves.training), len(halves.test)) == (60, 89)
        assert not set(halves.training) & set(halves.test)
        np.testing.assert_allclose(np.bincount(wine.labels[halves.test]), (29.5, 35.5, 24), atol=1)

    def test_rows_are_removed(self) -> None:
        labels = np.repeat(np.arange(3), 30)
        for seed in range(20):
            counts = np.bincount(labels[remove(labels, 0.1, np.random.default_rng(seed)).rows])
            assert set(counts) == {3, 30}

    def test_a_single_row_is_drawn_again(self) -> None:
        labels = np.repeat([0, 1], [5, 20])
        kept = [remove(labels, 0.1, np.random.default_rng(seed)) for seed in range(20)]
        assert all(np.bincount(labels[k.rows]).tolist() == [5, 2] for k in kept)
        assert sum(k.redrawn for k in kept) == pytest.approx(20, abs=15)

    def test_single_rows_only(self) -> None:
        with pytest.raises(SystemExit, match="single row"):
            remove(np.repeat([0, 1], 5), 0.1, np.random.default_rng(0))

    def test_no_fold_holds_a_whole_class(self) -> None:
        labels = np.repeat(np.arange(5), [2, 3, 20, 2, 6])
        fold = folds(labels, np.random.default_rng(0))
        assert set(fold) == set(range(FOLDS))
        assert all(len(set(fold[labels == k])) > 1 for k in range(5))

    def test_the_wrong_orientation_is_inadmissible(self) -> None:
        labels = np.repeat([0, 1], [80, 20])
        decided = labels.copy()
        decided[[0, 1, 2, 3, 80, 81, 82, 83, 84]] ^= 1
        rows = np.eye(2)[decided] * 0.8 + 0.1
        scores = Scores(labels, rows, rows, rows, labels)
        assert not solvable(scores)["acc"].inadmissible
        assert solvable(scores)["acc, untransposed"].inadmissible


class TestDataSets:
    TEXT = "size,colour,target,code\n1,red,a,7\n2,blue,a,8\n3,red,a,7\n4,red,a,9\n" + (
        "5,blue,b,7\n6,blue,b,7\n7,red,b,7\n8,red,b,7\n9,red,rare,7\n"
    )

    @pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
    def test_reading(self, tmp_path: Path, ending: str) -> None:
        path = tmp_path / f"iris{ending}"
        content = self.TEXT.encode()
        path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
        data = read(Listed("iris", categories=("code",)), path)
        assert data.inputs.shape == (8, 1 + 2 + 3)
        assert data.labels.tolist() == [0] * 4 + [1] * 4
        assert data.left_out == ("rare",)
        assert data.inputs[1, 1:].tolist() == [1, 0, 0, 1, 0]
        [loaded] = load(tmp_path)
        assert loaded.inputs[0, 0] == pytest.approx(-4 / np.arange(1, 10).std())
        assert loaded.inputs.shape == (8, 1 + 2 + 1)

    def test_unknown(self, tmp_path: Path) -> None:
        with pytest.raises(SystemExit, match="iriss"):
            load(None, ["iriss"])
        with pytest.raises(SystemExit, match="no data set"):
            load(tmp_path)

    def test_keys_do_not_depend_on_the_process(self) -> None:
        assert DataSet("wine", np.zeros((1, 1)), np.zeros(1, np.intp)).key == 0x560C6468
