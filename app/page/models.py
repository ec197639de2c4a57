"""A model: its versions, and its class mix over time."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.clock import now
from app.http.dependencies import Cursor, ModelName, StoreDep, encode_cursor
from app.http.paging import before
from app.kinds.registry import KINDS
from app.page import words
from app.page.render import page
from app.page.selection import RANGES, Choice, ChoiceDep
from app.page.series import of_estimates, segments_of
from app.schemas import presenters
from app.stored.estimates import StoredEstimate
from models_store.estimates import Filter
from models_store.records import EstimateRecord, ModelRecord, Page

POINTS = 500
CELLS = 20_000
"""Shares that are read for a chart; fewer points of models with many classes."""
RECENT = 20
"""Estimates whose segments are offered."""
VERSIONS = 20
router = APIRouter(include_in_schema=False)


@router.get("/models/{name}")
def model_page(
    name: ModelName, request: Request, store: StoreDep, choice: ChoiceDep, cursor: Cursor = None
) -> Response:
    """A model of any kind."""
    with store.read() as unit:
        record = unit.models.get(name)
        model = presenters.model(record, unit.aliases.of(name))
        numbers = unit.versions.numbers(name, None, VERSIONS)
        limit = max(20, min(POINTS, CELLS // max(len(record.classes), 1)))
        recent = _read(unit.estimates.list(Filter(model=name), None, RECENT))
        found = unit.estimates.list(_filter(name, choice), before(cursor), limit)
    last = recent[0] if recent else None
    shown = choice.among(record.classes, _first(record, last))
    return page(
        request,
        "model.html",
        model=model,
        numbers=numbers,
        choice=choice,
        ranges=RANGES,
        segments=sorted({*segments_of(recent), *filter(None, [choice.segment])}),
        shown=shown,
        series=of_estimates(_read(found)[::-1], shown),
        any_kept=bool(recent),
        told=words.state(last),
        last=last,
        sentence=None if last is None else words.sentence(last),
        next_cursor=encode_cursor(found.next),
        other=record.kind in KINDS,
        at=now(),
    )


def _read(page: Page[EstimateRecord]) -> list[StoredEstimate]:
    return [StoredEstimate.read(record.content) for record in page.items]


def _filter(name: str, choice: Choice) -> Filter:
    since, until = choice.span()
    key, _, value = choice.segment.partition("=")
    return Filter(model=name, since=since, until=until, segment={key: value} if key else {})


def _first(record: ModelRecord, last: StoredEstimate | None) -> Sequence[str]:
    """The class that moved most, where there is an estimate."""
    if last is None:
        return record.classes[:1]
    return [words.moved(last.prevalence)[0].class_]
