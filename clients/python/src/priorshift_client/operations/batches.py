"""Batches in: estimates, adjusted rows, tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from priorshift_client.batches import batch_of
from priorshift_client.bodies import batch_body, grouped_body
from priorshift_client.calls import Call, ask, into, place, write
from priorshift_client.options import IntervalOptions, MethodOptions, ShiftOptions
from priorshift_client.results import Estimate, Groups, RegionTest, ShiftTest
from priorshift_client.rows import labels as listed_labels

Selector = int | str


def estimate(
    model: str,
    batch: Any,
    version: Selector = "latest",
    method: str = "auto",
    *,
    interval: IntervalOptions | None = None,
    shift: ShiftOptions | None = None,
    options: MethodOptions | None = None,
    segment: Mapping[str, str] | None = None,
    observed_at: datetime | str | None = None,
    labels: Iterable[str | None] | None = None,
    include: Sequence[Literal["posteriors", "trace", "histogram"]] | None = None,
    columns: Iterable[str] | None = None,
    keep: bool = True,
    idempotency_key: str | None = None,
) -> Call[Estimate]:
    """Estimate the class shares of the population that a batch comes from.

    ``labels``: what is known of the rows, None where nothing is.
    """
    content = {
        "method": method,
        "interval": interval,
        "shift": shift,
        "options": options,
        "segment": segment,
        "observed_at": observed_at,
        "labels": _known(labels),
        "include": include,
    }
    body = batch_body(batch_of(batch, columns), content)
    where = _place(model, version, "estimates")
    if keep:
        return write(where, body, into(Estimate), idempotency_key)
    return ask(where, body, into(Estimate), query=(("keep", "false"),))


def estimate_groups(
    model: str,
    batch: Any,
    groups: Iterable[str],
    version: Selector = "latest",
    method: str = "auto",
    *,
    by: str = "group",
    interval: IntervalOptions | None = None,
    shift: ShiftOptions | None = None,
    options: MethodOptions | None = None,
    segment: Mapping[str, str] | None = None,
    observed_at: datetime | str | None = None,
    columns: Iterable[str] | None = None,
    keep: bool = True,
    idempotency_key: str | None = None,
) -> Call[Groups]:
    """One estimate for each group of a batch's rows.

    ``groups``: that of each row; ``by``: what they are, as in the segment of each kept estimate.
    """
    content = {
        "method": method,
        "interval": interval,
        "shift": shift,
        "options": options,
        "segment": segment,
        "observed_at": observed_at,
    }
    body = grouped_body(batch_of(batch, columns), listed_labels(groups), by, content)
    body = replace(body, query=(*body.query, ("group_by", by)))
    where = _place(model, version, "estimates")
    if keep:
        return write(where, body, into(Groups), idempotency_key)
    return ask(where, body, into(Groups), query=(("keep", "false"),))


def shift_test(
    model: str,
    batch: Any,
    version: Selector = "latest",
    *,
    shift: ShiftOptions | None = None,
    labels: Iterable[str | None] | None = None,
    columns: Iterable[str] | None = None,
) -> Call[ShiftTest]:
    """Test whether the priors have shifted; nothing is kept."""
    body = batch_body(batch_of(batch, columns), {"shift": shift, "labels": _known(labels)})
    return ask(_place(model, version, "shift-tests"), body, into(ShiftTest))


def region_test(
    model: str,
    batch: Any,
    priors: Mapping[str, float],
    version: Selector = "latest",
    *,
    level: float = 0.95,
    labels: Iterable[str | None] | None = None,
    columns: Iterable[str] | None = None,
) -> Call[RegionTest]:
    """Test whether stated priors are compatible with a batch; nothing is kept."""
    content = {"priors": priors, "level": level, "labels": _known(labels)}
    body = batch_body(batch_of(batch, columns), content)
    return ask(_place(model, version, "region-tests"), body, into(RegionTest))


def _place(model: str, version: Selector, what: str) -> str:
    return place("models", model, "versions", version, what)


def _known(labels: Iterable[str | None] | None) -> list[Any] | None:
    return None if labels is None else listed_labels(labels)
