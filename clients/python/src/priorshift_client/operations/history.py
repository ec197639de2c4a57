"""What is kept: estimates, and evaluations by late truth."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from priorshift_client.batches import batch_of
from priorshift_client.bodies import json_body, json_content
from priorshift_client.calls import Call, Listing, get, into, place, query, write
from priorshift_client.operations.models import PAGE
from priorshift_client.options import IntervalOptions, MethodOptions
from priorshift_client.quality import Evaluation
from priorshift_client.results import Estimate
from priorshift_client.rows import labels as listed_labels


def history(
    model: str | None = None,
    version: int | None = None,
    *,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    segment: Mapping[str, str] | None = None,
    limit: int = PAGE,
) -> Listing[Estimate]:
    """Kept estimates, newest first; ``until`` is exclusive, ``limit`` the size of a page."""
    which = query(model=model, version=version, since=since, until=until, limit=limit)
    segments = tuple((f"segment.{key}", value) for key, value in (segment or {}).items())
    return Listing(place("estimates"), Estimate, (*which, *segments))


def get_estimate(id: str) -> Call[Estimate]:
    """A kept estimate."""
    return get(place("estimates", id), into(Estimate))


def evaluate(
    model: str,
    labels: Any,
    batch: Any = None,
    version: int | str = "latest",
    method: str = "auto",
    *,
    estimate: Estimate | str | None = None,
    interval: IntervalOptions | None = None,
    options: MethodOptions | None = None,
    columns: Any = None,
    idempotency_key: str | None = None,
) -> Call[Evaluation]:
    """Compare a batch, or a kept estimate, with the labels of all its rows; it is kept."""
    data = None if batch is None else batch_of(batch, columns)
    content: dict[str, Any] = {
        "labels": listed_labels(labels),
        "estimate": estimate.id if isinstance(estimate, Estimate) else estimate,
        "method": method,
        "interval": interval,
        "options": options,
    }
    if data is not None:
        content |= {data.field: json_content(data), "columns": data.columns}
    where = place("models", model, "versions", version, "evaluations")
    return write(where, json_body(content), into(Evaluation), idempotency_key)


def get_evaluation(id: str) -> Call[Evaluation]:
    """A kept evaluation."""
    return get(place("evaluations", id), into(Evaluation))


def list_evaluations(
    model: str | None = None,
    version: int | None = None,
    *,
    estimate: Estimate | str | None = None,
    limit: int = PAGE,
) -> Listing[Evaluation]:
    """Kept evaluations, newest first; ``limit`` is the size of a page."""
    id = estimate.id if isinstance(estimate, Estimate) else estimate
    which = query(model=model, version=version, estimate=id, limit=limit)
    return Listing(place("evaluations"), Evaluation, which)
