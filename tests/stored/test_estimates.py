"""What is kept of an estimate: written with its format, and read as it was answered."""

import json
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from app.schemas import presenters
from app.schemas.estimates import EstimateOut
from app.schemas.evaluations import EvaluationOut
from app.stored.document import Document
from app.stored.estimates import StoredEstimate
from app.stored.evaluations import StoredEvaluation
from models_store.engine import connect
from models_store.tables import estimates
from tests.api.sources import COUNTED, register
from tests.stored.examples import ESTIMATE

INCLUDED = {"posteriors", "weighted_precision"}
"""Arrays of an answer that are not kept."""


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"trace": [[0.5, 0.5], [0.6, 0.4]]},
        {"monitor": "watch"},
        {"histogram": {"bins": 2, "before": {"a": [1.0, 2.0]}, "after": {"a": [2.0, 1.0]}}},
        {"shift": None, "interval": None, "adjustment": None},
        {"adjustment": {"scale": {"legit": 1.0, "fraud": 2.0}, "offsets": {}, "floor": 0.0}},
    ],
)
def test_a_row_without_a_number_is_read_and_answered_as_it_was(more: dict[str, Any]) -> None:
    before = ESTIMATE | more
    kept = StoredEstimate.read(before)
    assert json.dumps(presenters.kept_estimate(kept)) == json.dumps(before)


def test_what_is_answered_is_what_was_kept() -> None:
    shown = EstimateOut.model_validate(ESTIMATE)
    kept = presenters.stored_estimate(shown)
    assert presenters.kept_estimate(kept) == presenters.body(shown) == ESTIMATE


@pytest.mark.parametrize(
    ("kept", "shown"), [(StoredEstimate, EstimateOut), (StoredEvaluation, EvaluationOut)]
)
def test_everything_of_an_answer_is_kept_but_included_arrays(
    kept: type[Document], shown: type[EstimateOut | EvaluationOut]
) -> None:
    assert kept.model_fields.keys() | INCLUDED == shown.model_fields.keys() | INCLUDED
    assert not kept.model_fields.keys() & INCLUDED


def test_a_row_of_a_later_release_is_answered_with_what_to_do(
    client: httpx.Client, database_url: str
) -> None:
    register(client, "counted", COUNTED)
    batch = {"predicted_counts": {"legit": 140, "fraud": 60}}
    made = client.post("/v1/models/counted/versions/1/estimates", json=batch)
    address = made.headers["location"]
    assert client.get(address).content == made.content
    engine = connect(database_url)
    with engine.begin() as connection:
        content = connection.execute(sa.select(estimates.c.content)).scalar_one()
        assert content["format"] == 2
        connection.execute(estimates.update().values(content=content | {"format": 9}))
    engine.dispose()
    for refused in (client.get(address), client.get("/v1/estimates")):
        assert refused.status_code == 503
        assert "in format 9; this release reads formats up to 2" in refused.json()["detail"]
