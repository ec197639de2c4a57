import pickle

import numpy as np
import pytest

from app.core.arrays import (
    NARROW,
    PIECE,
    SILENT,
    add_columns,
    multiply_columns,
    multiply_rows,
    probabilities,
    probability_rows,
    refused_rows,
)
from app.core.errors import InvalidInput


class TestProbabilityRows:
    def test_good_rows_pass_untouched(self) -> None:
        given = np.array([[0.25, 0.75], [1.0, 0.0]])
        assert probability_rows(given, "/p").values is given

    def test_small_errors_are_rescaled_silently_larger_ones_counted(self) -> None:
        rows = probability_rows(np.array([[0.5, 0.5 + 5e-7], [0.5, 0.5005], [0.5, 0.5]]), "/p")
        np.testing.assert_allclose(rows.values.sum(axis=1), 1, atol=1e-15)
        assert rows.renormalised == 1

    @pytest.mark.parametrize(
        ("row", "word"),
        [
            ([0.5, np.nan], "NaN"),
            ([np.inf, 0.5], "infinity"),
            ([np.inf, -np.inf], "infinity"),
            ([1.5, -0.5], "negative"),
            ([0.5, 0.502], "sums to 1.002"),
            ([0.0, 0.0], "sums to 0"),
            ([1e308, 1e308], "sums to"),
        ],
    )
    def test_wrong_rows_are_named(self, row: list[float], word: str) -> None:
        values = np.array([[0.5, 0.5], row, [0.5, 0.5], row])
        with pytest.raises(InvalidInput) as caught:
            probability_rows(values, "/p")
        assert [fault.row for fault in caught.value.faults] == [1, 3]
        assert caught.value.faults[0].pointer == "/p/1"
        assert word in caught.value.faults[0].message

    def test_the_first_twenty_and_the_total(self) -> None:
        with pytest.raises(InvalidInput) as caught:
            probability_rows(np.full((500, 2), 0.7), "/p")
        assert len(caught.value.faults) == 20
        assert caught.value.count == 500

    def test_no_rows(self) -> None:
        with pytest.raises(InvalidInput, match="no rows"):
            probability_rows(np.zeros((0, 2)), "/p")


def test_a_single_vector_is_named_as_a_whole() -> None:
    with pytest.raises(InvalidInput) as caught:
        probabilities(np.array([0.5, 0.6]), "/target_priors")
    assert caught.value.faults[0].pointer == "/target_priors"
    assert caught.value.faults[0].row is None


class TestManyPieces:
    """What is checked and rescaled piece by piece must not show where the pieces end."""

    ROWS = 3 * PIECE

    @pytest.mark.parametrize("classes", [1, 2, 5, 40])
    def test_rescaling_equals_the_division_of_everything(self, classes: int) -> None:
        rng = np.random.default_rng(classes)
        values = rng.dirichlet(np.ones(classes), self.ROWS // classes)
        late = values[len(values) // 2 :]
        late *= 1 + rng.uniform(-2e-6, 2e-6, (len(late), 1))
        sums = values.sum(axis=1, keepdims=True)
        rows = probability_rows(values, "/p")
        np.testing.assert_allclose(rows.values, values / sums, rtol=1e-13)
        assert rows.renormalised == np.count_nonzero(np.abs(sums - 1) > SILENT)

    def test_a_wrong_row_in_the_last_piece_is_named(self) -> None:
        values = np.full((self.ROWS, 2), 0.5)
        values[-3, 0] = np.nan
        values[0, 1] += 1e-5
        with pytest.raises(InvalidInput) as caught:
            probability_rows(values, "/p")
        assert [fault.row for fault in caught.value.faults] == [self.ROWS - 3]

    def test_the_order_in_memory_does_not_matter(self) -> None:
        values = np.random.default_rng(0).dirichlet(np.ones(3), self.ROWS // 3) * (1 + 1e-5)
        plain = probability_rows(values, "/p")
        turned = probability_rows(np.asfortranarray(values), "/p")
        np.testing.assert_allclose(turned.values, plain.values, rtol=1e-15)
        assert turned.renormalised == plain.renormalised

    def test_the_given_rows_stay_as_they_were(self) -> None:
        values = np.full((4, 2), 0.5 + 1e-5)
        before = values.copy()
        probability_rows(values, "/p")
        np.testing.assert_array_equal(values, before)


def test_float32_stays_and_is_rescaled_only_where_it_must() -> None:
    rng = np.random.default_rng(0)
    exact = rng.dirichlet(np.ones(4), 5000)
    values = exact.astype(np.float32)
    rows = probability_rows(values, "/p")  # type: ignore[arg-type]
    assert rows.values is values
    off = values.copy()
    off[7] *= np.float32(1 + 5e-7)
    off[9] *= np.float32(1 + 5e-5)
    rows = probability_rows(off, "/p")  # type: ignore[arg-type]
    assert rows.values.dtype == np.float32
    assert rows.renormalised == 1
    np.testing.assert_allclose(rows.values, exact, rtol=3e-7)


def test_rows_that_cancel_are_refused() -> None:
    for row in ([np.inf, -np.inf], [np.nan, 1.0], [np.inf, 0.0], [-np.inf, 1.0]):
        values = np.array([[0.5, 0.5], row, [0.5, 0.5]])
        assert refused_rows(values).tolist() == [1]
        with pytest.raises(InvalidInput, match="/p/1: holds a NaN or an infinity"):
            probability_rows(values, "/p")


def test_an_error_of_a_worker_arrives_whole() -> None:
    with pytest.raises(InvalidInput) as caught:
        probability_rows(np.full((30, 2), 0.7), "/p")
    arrived = pickle.loads(pickle.dumps(caught.value))
    assert (arrived.faults, arrived.count, str(arrived)) == (
        caught.value.faults,
        30,
        str(caught.value),
    )


@pytest.mark.parametrize("classes", [1, 2, NARROW, NARROW + 1])
def test_narrow_rows_are_worked_on_as_wide_ones_are(classes: int) -> None:
    rng = np.random.default_rng(classes)
    rows, by_row, by_column = rng.random((50, classes)), rng.random(50), rng.random(classes)
    np.testing.assert_array_equal(multiply_rows(rows, by_row), rows * by_row[:, None])
    np.testing.assert_array_equal(multiply_columns(rows, by_column), rows * by_column)
    moved = rows.copy()
    add_columns(moved, by_column)
    np.testing.assert_array_equal(moved, rows + by_column)
