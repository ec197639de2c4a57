"""An estimate: what one batch said, and how far to believe it."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from app.core.errors import InvalidInput
from app.http.audit_trail import CallerDep
from app.http.body import only
from app.http.dependencies import StoreDep
from app.http.paging import identity
from app.page import charts, reliability, words
from app.page.render import page
from models_store.evaluations import EvaluationFilter
from models_store.records import VersionRecord
from models_store.store import UnitOfWork

EVALUATIONS = 5
router = APIRouter(include_in_schema=False)


@router.get("/estimates/{id}", dependencies=[only("class")])
def estimate_page(
    id: Annotated[str, Path()],
    request: Request,
    store: StoreDep,
    caller: CallerDep,
    class_name: Annotated[str | None, Query(alias="class", max_length=200)] = None,
) -> Response:
    """A kept estimate."""
    with store.read() as unit:
        kept = unit.estimates.get(identity(id, "estimate"), caller.models)
        content = kept.content
        shown = _class(content, class_name)
        record = unit.versions.get(kept.model, str(kept.version))
        curves = _curves(unit, record, shown)
        which = EvaluationFilter(estimate=kept.id, models=caller.models)
        evaluations = unit.evaluations.list(which, None, EVALUATIONS).items
    return page(
        request,
        "estimate.html",
        estimate=content,
        told=words.state(content),
        sentence=words.sentence(content),
        bars=charts.bars(content["prevalence"]),
        trace=charts.trace(content),
        histogram=charts.histogram(content, shown),
        calibration=record.source.calibration.method,
        curves=curves,
        shown=shown,
        evaluations=[found.content for found in evaluations],
    )


def _class(content: Mapping[str, Any], asked: str | None) -> str:
    """The class whose scores are shown: the one asked for, else the one that moved most."""
    if asked is not None and asked not in [row["class"] for row in content["prevalence"]]:
        raise InvalidInput.at("/query/class", "is not a class of this estimate")
    name: str = words.moved(content["prevalence"])[0]["class"]
    return asked or name


def _curves(unit: UnitOfWork, record: VersionRecord, shown: str) -> dict[str, Any] | None:
    return reliability.curves(unit, record, record.source.classes.index(shown))
