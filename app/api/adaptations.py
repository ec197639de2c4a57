"""Models of the other kinds adapted to a target sample, and their predictions."""

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from app.clock import now
from app.http.audit_trail import CallerDep
from app.http.body import Body, only
from app.http.dependencies import ModelName, Selector, StoreDep, answer, problems
from app.http.idempotency import OnceDep
from app.http.negotiation import require_json
from app.http.paging import identity
from app.kinds import Adapted, Kind, Load
from app.kinds.registry import KINDS, shapes
from app.openapi import takes
from app.schemas import presenters
from app.schemas.models import AdaptationOut, PredictionsOut
from app.stored.adaptations import StoredAdaptation
from models_store import arrays
from models_store.adaptations import Arrays, SourceRecord
from models_store.errors import OtherKind
from models_store.store import Store, UnitOfWork

router = APIRouter(tags=["adaptations"])


@router.post(
    "/v1/models/{name}/versions/{version}/adaptations",
    status_code=201,
    responses={
        201: {"model": AdaptationOut},
        **problems(400, 404, 406, 409, 413, 415, 422, 503),
    },
    openapi_extra=takes(*shapes("adapts")),
)
def create_adaptation(
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    once: OnceDep,
    store: StoreDep,
) -> Response:
    """Adapt a source model to a sample of the target population; kept."""
    require_json(request)
    once.require_new()
    with store.read() as unit:
        source = unit.sources.get(name, version)
    adapted = _kind(source).adapt(source, _loader(store, source), payload)
    kept = _kept(source, adapted)
    encoded = {key: arrays.encode(array) for key, array in adapted.arrays.items()}

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        unit.adaptations.add(source.id, now(), kept.written(), encoded)
        location = {"Location": f"/v1/adaptations/{kept.id}"}
        return source.model_id, answer({**kept.flat(), **adapted.included}, 201, location)

    return once.commit(work)


@router.get(
    "/v1/adaptations/{id}",
    responses={200: {"model": AdaptationOut}, **problems(404, 422, 503)},
    dependencies=[only()],
)
def get_adaptation(id: Annotated[str, Path()], store: StoreDep, caller: CallerDep) -> Response:
    """A kept adaptation."""
    with store.read() as unit:
        record = unit.adaptations.get(identity(id, "adaptation"), caller.models)
    return answer(StoredAdaptation.read(record.content).flat())


@router.post(
    "/v1/adaptations/{id}/predictions",
    responses={
        200: {"model": PredictionsOut},
        **problems(400, 404, 406, 413, 415, 422, 503),
    },
    openapi_extra=takes(*shapes("predicts")),
)
def create_predictions(
    id: Annotated[str, Path()],
    payload: Body,
    request: Request,
    store: StoreDep,
    caller: CallerDep,
) -> Response:
    """What an adaptation says of further rows; nothing is kept."""
    require_json(request)
    with store.read() as unit:
        record = unit.adaptations.get(identity(id, "adaptation"), caller.models)
        kept = unit.adaptations.arrays(record.id)
    load = _loader(store, record.source)
    return answer(_kind(record.source).predict(record, kept, load, payload))


def _kept(source: SourceRecord, adapted: Adapted) -> StoredAdaptation:
    return StoredAdaptation(
        id=uuid4().hex,
        model=source.model,
        version=source.number,
        kind=source.kind,
        created_at=now(),
        result=adapted.content,
        warnings=presenters.stored_warnings(adapted.warnings),
    )


def _loader(store: Store, source: SourceRecord) -> Load:
    """What reads the source's arrays, if they are not at hand."""

    def load() -> Arrays:
        with store.read() as unit:
            return unit.sources.arrays(source)

    return load


def _kind(source: SourceRecord) -> Kind:
    if source.kind not in KINDS:
        raise OtherKind(
            f"{source.model} is a {source.kind}: it takes …/estimates, adaptations are for "
            f"{' and '.join(KINDS)}"
        )
    return KINDS[source.kind]
