"""Trying a batch: the form; what it sends, the browser sends to the API."""

import re
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.core.errors import InvalidInput
from app.estimation.methods import METHODS
from app.http.audit_trail import CallerDep, seen
from app.http.body import only
from app.http.dependencies import StoreDep
from app.kinds.registry import KINDS
from app.page.methods import NEEDS
from app.page.render import page
from app.schemas.requests import NAME

MODELS = 200
router = APIRouter(include_in_schema=False)


@router.get("/try", dependencies=[only("model")])
def trial_page(
    request: Request,
    store: StoreDep,
    caller: CallerDep,
    model: Annotated[str | None, Query(max_length=63)] = None,
) -> Response:
    """The form, for the classifiers that the caller sees."""
    if model is not None and re.fullmatch(NAME, model) is None:
        raise InvalidInput.at("/query/model", "is not a model's name")
    with store.read() as unit:
        found = unit.models.list(None, MODELS, caller.models).items
        if model is not None:
            seen(caller, model)
            found = tuple({r.name: r for r in (*found, unit.models.get(model))}.values())
    usable = [record for record in found if record.kind not in KINDS and record.versions]
    return page(
        request,
        "try.html",
        models=usable,
        chosen=model,
        methods=METHODS,
        needs=NEEDS,
        may=caller.may("estimate"),
    )
