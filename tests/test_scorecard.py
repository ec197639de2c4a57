"""The pieces of the scorecard that no answer shows."""

import numpy as np
import pytest

from app.core.prevalence.scorecard import Score
from app.core.prevalence.source import Source, ValidationSet, derive
from app.estimation import scorecard

METHOD_ERRORS = tuple[tuple[str, list[float]], ...]


def source(rows: int = 200) -> Source:
    rng = np.random.default_rng(0)
    positive = rng.permutation(rows) / rows
    labels = (rng.random(rows) < positive).astype(np.intp)
    posteriors = np.column_stack([1 - positive, positive])
    return Source(("a", "b"), validation=ValidationSet(labels, posteriors))


def test_no_row_is_on_both_sides() -> None:
    given = source()
    assert given.validation is not None
    first, second = scorecard._halves(given, given.validation, derive(given), 3)
    for half, other in ((first, second), (second, first)):
        own = {float(row[1]) for row in half.watched.posteriors}
        drawn = {float(row[1]) for rows in half.pool for row in rows}
        assert own.isdisjoint(drawn)
        assert own == {float(row[1]) for rows in other.pool for row in rows}
        assert len(own) == pytest.approx(100, abs=1)


def test_time_ends_it_after_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorecard, "SECONDS", -1.0)
    card = scorecard.add_scorecard(source(), derive(source())).scorecard
    assert card is not None
    assert card.stopped
    assert len(card.sizes) == 1


@pytest.mark.parametrize(
    ("errors", "chosen"),
    [
        ((("mle", [0.1, 0.1, 0.1]), ("acc-qp", [0.05, 0.06, 0.05])), "acc-qp"),
        ((("mle", [0.1, 0.1, 0.1]), ("acc-qp", [0.0, 0.0, 0.28])), "mle"),
        ((("mle", [0.1, 0.1, 0.1]), ("acc-qp", [0.098, 0.098, 0.098])), "mle"),
        ((("mle", [0.1, 0.1, 0.1]), ("cc", [0.0, 0.0, 0.0])), "mle"),
        (
            (
                ("mle", [0.1, 0.1, 0.1]),
                ("acc-qp", [0.05, 0.06, 0.05]),
                ("pacc-qp", [0.04, 0.05, 0.04]),
            ),
            "pacc-qp",
        ),
        ((("mle", [float("nan"), 0.1, 0.1]), ("acc-qp", [0.0, 0.0, 0.0])), "mle"),
    ],
)
def test_the_default_gives_way_beyond_doubt_only(errors: METHOD_ERRORS, chosen: str) -> None:
    """Three halves' means stand for all of them."""
    card = tuple(Score(name, np.repeat(np.resize(values, 10), 4)) for name, values in errors)
    assert scorecard._choice(derive(source()), card)[0] == chosen
