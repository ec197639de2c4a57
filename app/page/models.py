"""A model: its versions, and its class mix over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.api import present
from app.api.context import Cursor, ModelName, StoreDep, encode_cursor, now
from app.api.history import before
from app.api.kinds.registry import KINDS
from app.api.payload import only
from app.core.errors import InvalidInput
from app.page import words
from app.page.render import page
from app.page.series import of_estimates, segments_of
from models_store.estimates import Filter
from models_store.records import ModelRecord
from models_store.store import UnitOfWork

POINTS = 500
CELLS = 20_000
"""Shares that are read for a chart; fewer points of models with many classes."""
VERSIONS = 20
RANGES: Mapping[str, timedelta | None] = {
    "all": None,
    "30d": timedelta(days=30),
    "7d": timedelta(days=7),
    "24h": timedelta(hours=24),
}
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Choice:
    """What is to be shown: a class, a segment as ``key=value``, a range of time."""

    class_name: str | None
    segment: str
    range: str

    def filter(self, model: str) -> Filter:
        """The estimates that are meant."""
        span = RANGES[self.range]
        key, _, value = self.segment.partition("=")
        return Filter(
            model=model,
            since=None if span is None else now() - span,
            segment={key: value} if key else {},
        )


@router.get("/models/{name}", dependencies=[only("class", "segment", "range", "cursor")])
def model_page(
    name: ModelName,
    request: Request,
    store: StoreDep,
    class_name: Annotated[str | None, Query(alias="class", max_length=200)] = None,
    segment: Annotated[str, Query(max_length=400)] = "",
    range: Annotated[str, Query(max_length=10)] = "all",
    cursor: Cursor = None,
) -> Response:
    """A model of any kind."""
    if range not in RANGES:
        raise InvalidInput.at("/query/range", f"must be one of {', '.join(RANGES)}")
    choice = Choice(class_name, segment, range)
    with store.read() as unit:
        record = unit.models.get(name)
        model = present.model(record, unit.aliases.of(name))
        numbers = unit.versions.numbers(name, None, VERSIONS)
        limit = max(20, min(POINTS, CELLS // max(len(record.classes), 1)))
        found = unit.estimates.list(choice.filter(name), before(cursor), limit)
        any_kept = bool(found.items) or _any(unit, record)
        recent = [r.content for r in unit.estimates.list(Filter(model=name), None, 50).items]
    contents = [kept.content for kept in found.items]
    shown = _class(record, choice.class_name, contents)
    series = None if shown is None else of_estimates(contents[::-1], shown)
    return page(
        request,
        "model.html",
        model=model,
        numbers=numbers,
        choice=choice,
        ranges=list(RANGES),
        segments=sorted({*segments_of(recent), *([segment] if segment else [])}),
        shown=shown,
        series=series,
        any_kept=any_kept,
        told=words.state(contents[0] if contents else None),
        last=contents[0] if contents else None,
        sentence=words.sentence(contents[0]) if contents else None,
        next_cursor=encode_cursor(found.next),
        other=record.kind in KINDS,
        at=now(),
    )


def _any(unit: UnitOfWork, record: ModelRecord) -> bool:
    return bool(unit.estimates.list(Filter(model=record.name), None, 1).items)


def _class(
    record: ModelRecord, asked: str | None, contents: Sequence[Mapping[str, Any]]
) -> str | None:
    """The class to show: the one asked for, else the one that moved most."""
    if asked is not None and asked not in record.classes:
        raise InvalidInput.at("/query/class", "is not a class of this model")
    if asked is not None or not contents:
        return asked or next(iter(record.classes), None)
    name: str = words.moved(contents[0]["prevalence"])[0]["class"]
    return name
