from typing import Any

import numpy as np
import pytest

from clients.python.tests.arrows import ByArrow
from clients.python.tests.frames import ByArray, ByInterchange
from priorshift_client import Client, Features, InvalidInput, Source
from priorshift_client.batches import Batch, batch_of
from tests.api.sources import CLASSES, scores

_, ROWS = scores(np.random.default_rng(4), 120, 0.4)
LEGIT, FRAUD = ROWS[:, 0].copy(), ROWS[:, 1].copy()
FRAMES = {
    "array": ByArray(ROWS[:, ::-1], CLASSES[::-1]),
    "dataframe": ByInterchange(
        {"fraud": FRAUD[:50], "legit": LEGIT[:50]}, {"fraud": FRAUD[50:], "legit": LEGIT[50:]}
    ),
    "arrow": ByArrow(
        {"fraud": FRAUD[:50], "legit": LEGIT[:50]}, {"fraud": FRAUD[50:], "legit": LEGIT[50:]}
    ),
    "mapping": {"fraud": FRAUD, "legit": LEGIT.tolist()},
}
LONG = "a name of more than twelve bytes"


def said(batch: Batch) -> Any:
    return batch.content.tolist() if isinstance(batch.content, np.ndarray) else batch.content


@pytest.mark.parametrize("kind", list(FRAMES))
def test_columns_are_taken_by_name(client: Client, cards: str, kind: str) -> None:
    found = client.estimate(cards, FRAMES[kind], keep=False)
    assert found.prevalence == client.estimate(cards, ROWS, keep=False).prevalence


class TestColumns:
    """``columns=`` names those of an array, and chooses those of a frame."""

    FRAME = ByArray(np.array([["a", 0.1, 0.9], ["b", 0.4, 0.6]], object), ["id", "fraud", "legit"])

    def test_they_are_chosen_by_name(self) -> None:
        found = batch_of(self.FRAME, ["legit", "fraud"])
        assert (said(found), found.columns) == ([[0.9, 0.1], [0.6, 0.4]], ("legit", "fraud"))
        assert batch_of(self.FRAME, ["id"]) == Batch("predictions", ["a", "b"])
        features = batch_of(Features(self.FRAME, ["id", "fraud"]))
        assert features == Batch("features", [["a", 0.1], ["b", 0.4]], ("id", "fraud"))
        source = Source(["legit", "fraud"], self.FRAME, ["fraud", "legit"])
        assert source.content()["validation"] == {
            "labels": ["legit", "fraud"],
            "posteriors": [[0.1, 0.9], [0.4, 0.6]],
            "columns": ("fraud", "legit"),
        }

    def test_one_that_is_not_there(self) -> None:
        with pytest.raises(ValueError, match="no column other"):
            batch_of(self.FRAME, ["legit", "other"])

    def test_those_without_names_are_named(self) -> None:
        assert batch_of(ByArray(ROWS, range(2)), CLASSES).columns == tuple(CLASSES)
        assert batch_of(ROWS, CLASSES).columns == tuple(CLASSES)

    def test_one_without_a_name_is_predictions(self) -> None:
        found = batch_of(ByArray(np.array([[1], [2]]), range(1)))
        assert (found.field, found.content) == ("predictions", [1, 2])


class TestArray:
    def test_names_that_are_positions_are_none(self) -> None:
        assert batch_of(ByArray(ROWS, range(2))).columns is None
        assert batch_of(ByArray(ROWS, [1, 0])).columns == ("1", "0")

    def test_one_column_of_text_is_predictions(self) -> None:
        found = batch_of(ByArray(np.array([["a"], ["b"]], object), ["predicted"]))
        assert (found.field, found.content, found.columns) == ("predictions", ["a", "b"], None)

    def test_text_among_posteriors(self) -> None:
        frame = ByArray(np.array([[0.5, "BE"]], object), ["legit", "country"])
        with pytest.raises(TypeError, match="country holds something else"):
            batch_of(frame)

    def test_features_keep_their_gaps(self) -> None:
        cells = np.array([[1.5, "BE"], [float("nan"), None]], object)
        found = batch_of(Features(ByArray(cells, ["amount", "country"])))
        assert found.content == [[1.5, "BE"], [None, None]]
        assert found.columns == ("amount", "country")

    def test_an_array_without_names(self) -> None:
        class Tensor:
            def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
                return ROWS

        assert batch_of(Tensor()).columns is None
        np.testing.assert_array_equal(batch_of(Tensor()).content, ROWS)


class TestMapping:
    def test_columns_of_different_lengths(self) -> None:
        with pytest.raises(ValueError, match=r"differ in length.*'fraud': 1"):
            batch_of({"legit": [0.5, 0.5], "fraud": [0.5]})

    def test_scalars_are_counts(self) -> None:
        counts = batch_of({"legit": np.int64(9), "fraud": 1})
        assert (counts.field, counts.content) == ("predicted_counts", {"legit": 9, "fraud": 1})


class TestInterchange:
    @pytest.mark.parametrize("missing", ["bits", "bytes"])
    def test_missing_values(self, missing: str) -> None:
        frame = ByInterchange({"n": [1.0, None, 3.0], "t": ["a", None, "öc"]}, missing=missing)
        assert batch_of(Features(frame)).content == [[1.0, "a"], [None, None], [3.0, "öc"]]

    def test_nothing_is_lost_without_a_mask(self) -> None:
        frame = ByInterchange({"t": ["a", "b"]}, {"t": ["c"]})
        assert batch_of(frame).content == ["a", "b", "c"]

    def test_other_kinds_are_not_read(self) -> None:
        with pytest.raises(TypeError, match="a batch is rows"):
            batch_of(ByInterchange({"b": [True, False]}))


class TestArrow:
    @pytest.mark.parametrize("kind", ["f8", "f4", "f2", "i8", "i4", "u1", "i1"])
    def test_numbers(self, kind: str) -> None:
        frame = ByArrow({"a": np.array([1, 0, 1], kind), "b": np.array([0, 1, 0], kind)})
        assert said(batch_of(frame)) == [[1, 0], [0, 1], [1, 0]]

    def test_everything_handed_out_is_given_back(self) -> None:
        frame = ByArrow({"a": LEGIT, "b": FRAUD}, {"a": LEGIT, "b": FRAUD})
        assert batch_of(frame).content.shape == (240, 2)
        assert frame.handed == frame.released == 3

    def test_text_of_three_kinds(self) -> None:
        frame = ByArrow(
            {
                "plain": ["x", "", "öz"],
                "view": np.array(["x", LONG, LONG * 2], object),
                "dictionary": (np.array([1, 0, 1], np.int8), ["lo", "hi"]),
            }
        )
        assert batch_of(Features(frame)).content == [
            ["x", "x", "hi"],
            ["", LONG, "lo"],
            ["öz", LONG * 2, "hi"],
        ]

    def test_missing_values(self) -> None:
        frame = ByArrow(
            {
                "n": np.array([1, 2]),
                "t": ["a", "b"],
                "d": (np.array([0, 1], np.int8), ["lo", "hi"]),
            },
            masked=["n", "t", "d"],
        )
        assert batch_of(Features(frame)).content == [[1.0, "a", "lo"], [None, None, None]]

    def test_missing_posteriors_are_rows_at_fault(self, client: Client, cards: str) -> None:
        frame = ByArrow({"legit": LEGIT, "fraud": FRAUD}, masked=["fraud"])
        with pytest.raises(InvalidInput) as raised:
            client.estimate(cards, frame)
        assert raised.value.rows == (119,)

    def test_a_stream_that_fails(self) -> None:
        with pytest.raises(ValueError, match="out of luck"):
            batch_of(ByArrow({"a": LEGIT}, fails=True))

    def test_other_kinds_are_not_read(self) -> None:
        frame = ByArrow({"b": np.array([True, False])})
        with pytest.raises(TypeError, match="a batch is rows"):
            batch_of(frame)
        assert frame.handed == frame.released


def test_a_table_of_pyarrow(client: Client, cards: str) -> None:
    """Where it is installed: what the objects above speak is what it speaks."""
    arrow = pytest.importorskip("pyarrow")
    frame = arrow.table({"fraud": FRAUD, "legit": LEGIT})
    kept = client.estimate(cards, ROWS, keep=False).prevalence
    assert client.estimate(cards, frame, keep=False).prevalence == kept
    reader = arrow.RecordBatchReader.from_batches(frame.schema, frame.to_batches())
    assert client.estimate(cards, reader, keep=False).prevalence == kept
