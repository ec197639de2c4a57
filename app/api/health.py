"""For the operator: alive, ready, which version."""

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from app.http.audit_trail import CallerDep
from app.http.body import only
from app.http.dependencies import StoreDep, answer, problems
from app.http.problems import problem
from app.metrics import MEDIA_TYPE
from app.release import RELEASE
from app.services import services_of
from models_store.errors import Unavailable

router = APIRouter(tags=["operation"])


class StatusOut(BaseModel):
    """One word."""

    status: str


class ReleaseOut(BaseModel):
    """What runs here: the release, and the database revision that it needs."""

    name: str
    version: str
    schema_revision: str


@router.get("/livez", response_model=StatusOut)
async def livez() -> StatusOut:
    """The process answers."""
    return StatusOut(status="alive")


@router.get("/readyz", responses={200: {"model": StatusOut}, **problems(503)})
def readyz(request: Request, store: StoreDep) -> Response:
    """The database answers and is migrated."""
    try:
        revision = store.revision()
    except Unavailable:
        return _not_ready(request, "the database cannot be reached; see PRIORSHIFT_DATABASE_URL")
    head = services_of(request).head
    if revision != head:
        detail = f"the database is at revision {revision}, not at {head}; run priorshift migrate"
        return _not_ready(request, detail)
    return answer({"status": "ready"})


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {}}}},
    dependencies=[only()],
)
def metrics(request: Request, caller: CallerDep) -> Response:
    """What Prometheus scrapes; of every worker, whichever answers."""
    services = services_of(request)
    families = services.standings.families(caller.models)
    page = services.metrics.page(families, caller.models)
    return Response(page, media_type=MEDIA_TYPE)


def _not_ready(request: Request, detail: str) -> Response:
    return problem(request, 503, "not-ready", detail, {"Retry-After": "1"})


@router.get("/version", response_model=ReleaseOut)
def version(request: Request) -> ReleaseOut:
    """Which release answers."""
    return ReleaseOut(name="priorshift", version=RELEASE, schema_revision=services_of(request).head)
