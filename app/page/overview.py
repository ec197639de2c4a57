"""The first page: every model, what it sees now, and whether that is news."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.clock import now
from app.http.audit_trail import CallerDep
from app.http.body import only
from app.http.dependencies import Cursor, StoreDep, bad_cursor, decode_cursor, encode_cursor
from app.page import words
from app.page.render import page
from app.page.sparkline import Sparkline, sparkline
from app.page.watching import watches
from app.schemas import presenters
from app.schemas.models import ModelOut
from app.schemas.requests import NAME
from app.stored.estimates import StoredEstimate, StoredShare
from models_store.estimates import Filter
from models_store.store import UnitOfWork

MODELS = 20
"""Models on a page."""
LOOKED_AT = 24
"""Estimates of each that are looked at,"""
CELLS = 2_000
"""unless that makes more shares than this."""
SHOWN = 3
"""Classes of each that are shown: those that moved most."""
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class ModelLine:
    """A model on the overview; ``last``: its last estimate, ``alarm``: its last shift."""

    model: ModelOut
    told: words.Told
    last: StoredEstimate | None
    movers: Sequence[StoredShare]
    trend: Sparkline | None
    alarm: StoredEstimate | None
    looked_at: int


@router.get("/", dependencies=[only("cursor")])
def overview(
    request: Request, store: StoreDep, caller: CallerDep, cursor: Cursor = None
) -> Response:
    """Models by name."""
    place = decode_cursor(cursor, 1)
    if place is not None and re.fullmatch(NAME, place[0]) is None:
        raise bad_cursor()
    with store.read() as unit:
        found = unit.models.list(place[0] if place else None, MODELS, caller.models)
        models = [presenters.model(record, unit.aliases.of(record.name)) for record in found.items]
        lines = [_line(unit, model) for model in models]
        watched, more_watched = watches(unit, caller) if place is None else ([], False)
    return page(
        request,
        "overview.html",
        lines=lines,
        watched=watched,
        more_watched=more_watched,
        at=now(),
        next_cursor=encode_cursor(found.next),
    )


def _line(unit: UnitOfWork, model: ModelOut) -> ModelLine:
    limit = max(2, min(LOOKED_AT, CELLS // max(len(model.classes), 1)))
    kept = unit.estimates.list(Filter(model=model.name), None, limit).items
    estimates = [StoredEstimate.read(record.content) for record in kept]
    last = estimates[0] if estimates else None
    movers = words.moved(last.prevalence)[:SHOWN] if last is not None else []
    return ModelLine(
        model=model,
        told=words.state(last),
        last=last,
        movers=movers,
        trend=_trend(estimates[::-1], movers[0]) if movers else None,
        alarm=next((e for e in estimates if e.shift and e.shift.detected), None),
        looked_at=len(estimates),
    )


def _trend(estimates: Sequence[StoredEstimate], mover: StoredShare) -> Sparkline | None:
    """Of the class that moved most, oldest estimate first."""
    rows = [estimate.share(mover.class_) for estimate in estimates]
    shares = [row.estimate for row in rows]
    ends = [
        (share, share) if row.lower is None or row.upper is None else (row.lower, row.upper)
        for row, share in zip(rows, shares, strict=True)
    ]
    return sparkline(shares, ends, mover.source)
