"""An estimate: what one batch said, and how far to believe it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from app.core.errors import InvalidInput
from app.http.audit_trail import CallerDep
from app.http.body import only
from app.http.dependencies import StoreDep
from app.http.paging import identity
from app.page import charts, reliability, words
from app.page.render import page
from app.stored.estimates import StoredEstimate
from app.stored.evaluations import StoredEvaluation
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
        estimate = StoredEstimate.read(kept.content)
        shown = _class(estimate, class_name)
        record = unit.versions.get(kept.model, str(kept.version))
        curves = _curves(unit, record, shown)
        which = EvaluationFilter(estimate=kept.id, models=caller.models)
        evaluations = unit.evaluations.list(which, None, EVALUATIONS).items
    return page(
        request,
        "estimate.html",
        estimate=estimate,
        told=words.state(estimate),
        sentence=words.sentence(estimate),
        bars=charts.bars(estimate.prevalence),
        trace=charts.trace(estimate),
        histogram=charts.histogram(estimate, shown),
        calibration=record.source.calibration.method,
        curves=curves,
        shown=shown,
        evaluations=[StoredEvaluation.read(found.content) for found in evaluations],
    )


def _class(estimate: StoredEstimate, asked: str | None) -> str:
    """The class whose scores are shown: the one asked for, else the one that moved most."""
    if asked is not None and asked not in [row.class_ for row in estimate.prevalence]:
        raise InvalidInput.at("/query/class", "is not a class of this estimate")
    return asked or words.moved(estimate.prevalence)[0].class_


def _curves(unit: UnitOfWork, record: VersionRecord, shown: str) -> dict[str, object] | None:
    return reliability.curves(unit, record, record.source.classes.index(shown))
