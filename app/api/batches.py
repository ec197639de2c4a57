"""Answers that are not kept: adjusted posteriors and intercepts, shift and region tests."""

import json as stdlib_json

from fastapi import APIRouter
from starlette.responses import Response

from app.core import sheets
from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.warnings import Warning, WarningCode
from app.estimation import (
    AdjustedRows,
    adjust_batch,
    adjust_intercepts,
    check_region,
    compare_priors,
)
from app.formats import arrow, json, media_types
from app.http.dependencies import answer, problems
from app.http.pieces import Pieces
from app.http.submission import Submission, Submit
from app.intake import parse
from app.openapi import takes, takes_batch
from app.schemas import presenters
from app.schemas.batches import BiasAdjustmentOut, PosteriorsOut, RegionTestOut, ShiftTestOut
from app.schemas.requests import BiasAdjustmentIn, PosteriorsIn, RegionTestIn, ShiftTestIn

router = APIRouter(prefix="/v1/models/{name}/versions/{version}", tags=["batches"])
BATCH_PROBLEMS = problems(400, 404, 406, 409, 413, 415, 422, 503)
LONGEST_HEADER = 4000
ESCAPED = "names that a spreadsheet would take for formulas begin with an apostrophe"


@router.post(
    "/posteriors",
    responses={
        200: {"model": PosteriorsOut, "content": {kind: {} for kind in media_types.NAMES[1:]}},
        **BATCH_PROBLEMS,
    },
    openapi_extra=takes_batch(PosteriorsIn),
)
def create_posteriors(submit: Submit) -> Response:
    """Adjust rows to stated target priors or, without them, to the estimate of these rows."""
    submission = submit.batch(PosteriorsIn, offered=(*media_types.NAMES, *media_types.ALIASES))
    _require_used(submission.body)
    batch = submission.batch
    target, notes = _target(submission)
    costs = _costs(submission)
    request = submission.request(batch)
    rows = adjust_batch(submission.source, batch, target, request, submission.rows, costs)
    return _rows(submission, rows, (*notes, *rows.warnings))


@router.post(
    "/shift-tests",
    responses={200: {"model": ShiftTestOut}, **BATCH_PROBLEMS},
    openapi_extra=takes_batch(ShiftTestIn),
)
def create_shift_test(submit: Submit) -> Response:
    """Test whether the priors have shifted; nothing is kept."""
    submission = submit.batch(ShiftTestIn)
    batch = submission.batch
    request = submission.request(batch)
    result = compare_priors(submission.source, batch, request, submission.rows)
    return answer(presenters.shift_test(submission.record, result))


@router.post(
    "/region-tests",
    responses={200: {"model": RegionTestOut}, **BATCH_PROBLEMS},
    openapi_extra=takes_batch(RegionTestIn),
)
def create_region_test(submit: Submit) -> Response:
    """Test whether stated priors lie in the likelihood-ratio region of a batch; nothing kept."""
    submission = submit.batch(RegionTestIn)
    batch, stated = submission.batch, submission.body.priors
    priors, notes = parse.stated_priors(stated, submission.classes, "/priors")
    result = check_region(submission.source, batch, priors, submission.body.level)
    return answer(presenters.region_test(submission.record, priors, result, notes))


@router.post(
    "/bias-adjustments",
    responses={200: {"model": BiasAdjustmentOut}, **BATCH_PROBLEMS},
    openapi_extra=takes(BiasAdjustmentIn),
)
def create_bias_adjustment(submit: Submit) -> Response:
    """Adjust the intercepts of a softmax model to stated priors, or to the estimate of a batch."""
    submission = submit.json(BiasAdjustmentIn)
    body, source = submission.body, submission.source
    intercepts, reference = parse.intercepts(body, source.classes)
    target, batch, notes = submission.target
    request = submission.request(batch)
    rows = submission.rows
    result = adjust_intercepts(source, intercepts, reference, target, batch, request, rows)
    return answer(presenters.bias_adjustment(submission.record, body.reference, result, notes))


def _require_used(body: PosteriorsIn) -> None:
    """``InvalidInput`` for what would say nothing beside the rest."""
    if body.target_priors is not None:
        parse.leave_out(body, ("method", "options"), "finds target_priors, which are stated")
    if body.adjust == "always":
        parse.leave_out(body, ("shift",), 'is of "adjust": "if-shifted"')


def _target(submission: Submission[PosteriorsIn]) -> tuple[Floats | None, tuple[Warning, ...]]:
    """Stated target priors, and what to say of them; None for those of the rows themselves."""
    stated = submission.body.target_priors
    if stated is None:
        return None, ()
    return parse.stated_priors(stated, submission.classes, "/target_priors")


def _costs(submission: Submission[PosteriorsIn]) -> Floats | None:
    costs = submission.body.costs
    if costs is None:
        return None
    matrix = parse.costs(costs, len(submission.classes))
    if submission.media_type != json.MEDIA_TYPE:
        raise InvalidInput.at("/costs", "asks for decisions, which only a JSON answer holds")
    return matrix


def _rows(
    submission: Submission[PosteriorsIn], rows: AdjustedRows, warnings: tuple[Warning, ...]
) -> Response:
    """Adjusted rows in the format that the caller takes."""
    record, media_type = submission.record, submission.media_type
    classes = submission.classes
    write = media_types.BY_NAME[media_types.canonical(media_type)].write
    if write is not None:
        headers = _headers((*warnings, *_of_cells(media_type, classes)), rows, classes)
        return Pieces(write(classes, rows.posteriors), 200, headers, media_type)
    content = presenters.posteriors(record, submission.batch, rows, warnings)
    adjusted = presenters.rows(classes, rows.posteriors, submission.body.posteriors)
    return Pieces(list(json.pieces({**content, "posteriors": adjusted})), media_type=media_type)


def _of_cells(media_type: str, names: tuple[str, ...]) -> tuple[Warning, ...]:
    changed = [name for name in names if sheets.cell(name) != name]
    return (
        (Warning(WarningCode.ESCAPED_NAMES, ESCAPED),)
        if media_type == arrow.CSV and changed
        else ()
    )


def _headers(
    warnings: tuple[Warning, ...], rows: AdjustedRows, names: tuple[str, ...]
) -> dict[str, str]:
    """What a binary answer cannot hold: warning codes, the method, the priors (ASCII JSON)."""
    codes = [warning.code for warning in warnings]
    target = stdlib_json.dumps(presenters.by_class(names, rows.target))
    headers: dict[str, str] = {"Priorshift-Method": rows.method or "stated"}
    if len(target) <= LONGEST_HEADER:
        headers["Priorshift-Target-Priors"] = target
    else:
        codes.append(WarningCode.PRIORS_NOT_IN_HEADER)
    headers["Priorshift-Warnings"] = ", ".join(codes)
    return headers
