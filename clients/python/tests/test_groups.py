import asyncio
from typing import Any

import numpy as np
import pytest

from priorshift_client import AsyncClient, Client, InvalidInput
from tests.api.sources import CLASSES, scores

LABELS, ROWS = scores(np.random.default_rng(3), 400, 0.5)
COUNTRIES = ["BE", "NL", "BE", "LU"] * 100


def test_each_group_is_as_if_alone(client: Client, cards: str) -> None:
    found = client.estimate_groups(
        cards, ROWS, COUNTRIES, by="country", columns=CLASSES, interval={"level": 0.9}
    )
    assert (found.group_by, len(found)) == ("country", 3)
    assert [item.group for item in found] == ["BE", "NL", "LU"]
    chosen = np.array(COUNTRIES) == "BE"
    alone = client.estimate(cards, ROWS[chosen], interval={"level": 0.9}, keep=False)
    grouped = found["BE"].estimate
    np.testing.assert_array_equal(grouped.prevalence.array, alone.prevalence.array)
    assert grouped.segment == {"country": "BE"}
    assert grouped.id is not None
    assert client.estimates.get(grouped.id).size == 200
    assert grouped.shift is not None
    assert found["BE"].holm_p_value is not None
    assert found["BE"].holm_p_value >= grouped.shift.p_value
    with pytest.raises(KeyError):
        found["FR"]


def test_predicted_labels_have_groups_too(client: Client, cards: str) -> None:
    predicted = [CLASSES[k] for k in LABELS]
    found = client.estimate_groups(cards, predicted, COUNTRIES, method="cc", keep=False)
    assert [item.estimate.size for item in found] == [200, 100, 100]
    assert found["LU"].estimate.id is None


def test_without_waiting(cards: str, base: str) -> None:
    async def work() -> int:
        async with AsyncClient(base) as client:
            return len(
                await client.estimate_groups(cards, ROWS, COUNTRIES, columns=CLASSES, keep=False)
            )

    assert asyncio.run(work()) == 3


@pytest.mark.parametrize(
    ("batch", "groups", "options", "error", "said"),
    [
        (ROWS, COUNTRIES, {}, ValueError, "name the classes"),
        (ROWS, COUNTRIES[1:], {"columns": CLASSES}, ValueError, "399 groups for 400 rows"),
        (ROWS, COUNTRIES, {"columns": CLASSES, "by": "fraud"}, ValueError, "another name"),
        ({"legit": 5}, COUNTRIES, {}, TypeError, "rows of posteriors"),
        (ROWS * np.nan, COUNTRIES, {"columns": CLASSES}, InvalidInput, "not finite"),
        (ROWS * 2, COUNTRIES, {"columns": CLASSES}, InvalidInput, "sums to 2"),
        (
            ROWS,
            [None, *COUNTRIES[1:]],
            {"columns": CLASSES},
            InvalidInput,
            "needs a group",
        ),
    ],
)
def test_what_is_wrong_is_said(
    client: Client,
    cards: str,
    batch: Any,
    groups: list[str],
    options: dict[str, Any],
    error: type[Exception],
    said: str,
) -> None:
    with pytest.raises(error, match=said):
        client.estimate_groups(cards, batch, groups, **options)
