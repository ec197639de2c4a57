"""Answers that are not kept: adjusted posteriors and intercepts, shift and region tests."""

import json as stdlib_json

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.core import sheets
from app.core.arrays import Codes, Floats
from app.core.errors import InvalidInput
from app.core.warnings import Warning
from app.estimation import (
    AdjustedRows,
    OutputBatch,
    adjust_batch,
    adjust_intercepts,
    check_region,
    compare_priors,
)
from app.formats import arrow, json, npy
from app.formats.pieces import Piece, Pieces
from app.http.body import BATCHES, Body
from app.http.dependencies import ModelName, Selector, StoreDep, answer, problems
from app.http.negotiation import accepted, require_json
from app.intake import options, parse
from app.openapi import takes, takes_batch
from app.schemas import presenters
from app.schemas.batches import BiasAdjustmentOut, PosteriorsOut, RegionTestOut, ShiftTestOut
from app.schemas.requests import BiasAdjustmentIn, PosteriorsIn, RegionTestIn, ShiftTestIn
from app.serving.classifiers import LearnersDep
from app.serving.null_distributions import NullsDep

router = APIRouter(prefix="/v1/models/{name}/versions/{version}", tags=["batches"])
BATCH_PROBLEMS = problems(400, 404, 406, 409, 413, 415, 422, 503)
LONGEST_HEADER = 4000
ESCAPED = "names that a spreadsheet would take for formulas begin with an apostrophe"


@router.post(
    "/posteriors",
    responses={
        200: {"model": PosteriorsOut, "content": {kind: {} for kind in BATCHES[1:]}},
        **BATCH_PROBLEMS,
    },
    openapi_extra=takes_batch(PosteriorsIn),
)
def create_posteriors(
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    store: StoreDep,
    nulls: NullsDep,
    learners: LearnersDep,
) -> Response:
    """Adjust rows to stated target priors or, without them, to the estimate of these rows."""
    media_type = accepted(request, (*BATCHES, *arrow.ALIASES))
    sent = payload.batch()
    given = parse.envelope(PosteriorsIn, sent.content, sent.text)
    if given.target_priors is not None:
        parse.leave_out(given, ("method", "options"), "finds target_priors, which are stated")
    if given.adjust == "always":
        parse.leave_out(given, ("shift",), 'is of "adjust": "if-shifted"')
    record = store.version(name, version)
    source = record.source
    batch = parse.batch(given, source, learners.of(record), sent.frame)
    target: Floats | None = None
    said: tuple[Warning, ...] = ()
    if given.target_priors is not None:
        target, said = parse.stated_priors(given.target_priors, source.classes, "/target_priors")
    costs = None if given.costs is None else parse.costs(given.costs, len(source.classes))
    if costs is not None and media_type != json.MEDIA_TYPE:
        raise InvalidInput.at("/costs", "asks for decisions, which only a JSON answer holds")
    asked = options.asked(given, source, learners.of(record), batch)
    rows = adjust_batch(source, batch, target, asked, nulls.of(record), costs)
    warnings = (*said, *rows.warnings)
    if media_type != json.MEDIA_TYPE:
        warnings = (*warnings, *_of_cells(media_type, source.classes))
        headers = _headers(warnings, rows, source.classes)
        return Pieces(_encoded(media_type, rows, source.classes), 200, headers, media_type)
    bare_counts = isinstance(batch, OutputBatch) and batch.codes is None
    shown = PosteriorsOut(
        model=record.model,
        version=record.number,
        size=batch.size,
        columns=list(source.classes),
        outputs=list(source.outputs) if bare_counts else None,
        method=rows.method,
        source_priors=presenters.by_class(source.classes, rows.source),
        target_priors=presenters.by_class(source.classes, rows.target),
        warnings=presenters.warnings(warnings),
        decisions=_named(source.classes, rows.decided),
        threshold=rows.threshold,
        posteriors=None,
    )
    shown_rows = presenters.rows(source.classes, rows.posteriors, given.posteriors)
    content = {**presenters.body(shown), "posteriors": shown_rows}
    return Pieces(list(json.pieces(content)), media_type=json.MEDIA_TYPE)


@router.post(
    "/shift-tests",
    responses={200: {"model": ShiftTestOut}, **BATCH_PROBLEMS},
    openapi_extra=takes_batch(ShiftTestIn),
)
def create_shift_test(
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    store: StoreDep,
    nulls: NullsDep,
    learners: LearnersDep,
) -> Response:
    """Test whether the priors have shifted; nothing is kept."""
    require_json(request)
    sent = payload.batch()
    given = parse.envelope(ShiftTestIn, sent.content, sent.text)
    record = store.version(name, version)
    batch = parse.batch(given, record.source, learners.of(record), sent.frame)
    asked = options.asked(given, record.source)
    result = compare_priors(record.source, batch, asked, nulls.of(record))
    return answer(
        ShiftTestOut(
            model=record.model,
            version=record.number,
            size=result.size,
            shift=presenters.shift(result.shift, record.source),
            diagnostics=presenters.diagnostics(record.source.classes, result.diagnostics),
            warnings=presenters.warnings(result.warnings),
        )
    )


@router.post(
    "/region-tests",
    responses={200: {"model": RegionTestOut}, **BATCH_PROBLEMS},
    openapi_extra=takes_batch(RegionTestIn),
)
def create_region_test(
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    store: StoreDep,
    learners: LearnersDep,
) -> Response:
    """Test whether stated priors lie in the likelihood-ratio region of a batch; nothing kept."""
    require_json(request)
    sent = payload.batch()
    given = parse.envelope(RegionTestIn, sent.content, sent.text)
    record = store.version(name, version)
    source = record.source
    batch = parse.batch(given, source, learners.of(record), sent.frame)
    priors, said = parse.stated_priors(given.priors, source.classes, "/priors")
    result = check_region(source, batch, priors, given.level)
    return answer(
        RegionTestOut(
            model=record.model,
            version=record.number,
            size=result.size,
            inside=result.inside,
            level=result.level,
            statistic=result.statistic,
            factor=result.factor,
            degrees_of_freedom=result.degrees_of_freedom,
            p_value=result.p_value,
            priors=presenters.by_class(source.classes, priors),
            prevalence=presenters.by_class(source.classes, result.prevalence),
            warnings=presenters.warnings((*said, *result.warnings)),
        )
    )


@router.post(
    "/bias-adjustments",
    responses={200: {"model": BiasAdjustmentOut}, **BATCH_PROBLEMS},
    openapi_extra=takes(BiasAdjustmentIn),
)
def create_bias_adjustment(
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    store: StoreDep,
    nulls: NullsDep,
    learners: LearnersDep,
) -> Response:
    """Adjust the intercepts of a softmax model to stated priors, or to the estimate of a batch."""
    require_json(request)
    given = parse.envelope(BiasAdjustmentIn, payload.json())
    record = store.version(name, version)
    source = record.source
    intercepts, reference = parse.intercepts(given, source.classes)
    scoring = learners.of(record)
    target, batch, said = parse.target_or_batch(given, source, scoring)
    asked = options.asked(given, source, scoring, batch)
    rows = nulls.of(record)
    result = adjust_intercepts(source, intercepts, reference, target, batch, asked, rows)
    return answer(
        BiasAdjustmentOut(
            model=record.model,
            version=record.number,
            method=result.method,
            scale=result.scale,
            intercepts=presenters.by_class(source.classes, result.intercepts),
            reference=given.reference,
            target_priors=presenters.by_class(source.classes, result.target),
            warnings=presenters.warnings((*said, *result.warnings)),
        )
    )


def _encoded(media_type: str, rows: AdjustedRows, names: tuple[str, ...]) -> list[Piece]:
    if media_type == npy.MEDIA_TYPE:
        return npy.encode(rows.posteriors)
    return arrow.encode(arrow.ALIASES.get(media_type, media_type), names, rows.posteriors)


def _of_cells(media_type: str, names: tuple[str, ...]) -> tuple[Warning, ...]:
    changed = [name for name in names if sheets.cell(name) != name]
    return (Warning("escaped-names", ESCAPED),) if media_type == arrow.CSV and changed else ()


def _named(names: tuple[str, ...], codes: Codes | None) -> list[str] | None:
    return None if codes is None else [names[k] for k in codes]


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
        codes.append("priors-not-in-header")
    headers["Priorshift-Warnings"] = ", ".join(codes)
    return headers
