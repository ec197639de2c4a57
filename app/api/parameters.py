"""The classifier of a version trained in the service, as parameters: its own, and adjusted."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.core.errors import MethodUnavailable
from app.core.learners.linear import Linear
from app.core.learners.trained import Trained
from app.estimation import adjust_intercepts
from app.http.body import Body, only
from app.http.dependencies import ModelName, Selector, StoreDep, answer, problems
from app.http.negotiation import require_json
from app.intake import options, parse
from app.openapi import takes
from app.schemas import presenters
from app.schemas.batches import ParametersOut
from app.schemas.requests import AdjustedModelIn
from app.serving.classifiers import LearnersDep
from app.serving.null_distributions import NullsDep
from models_store.records import VersionRecord

router = APIRouter(prefix="/v1/models/{name}/versions/{version}", tags=["batches"])


@router.get(
    "/parameters",
    response_model=ParametersOut,
    responses=problems(404, 409, 422, 503),
    dependencies=[only()],
)
def get_parameters(
    name: ModelName, version: Selector, store: StoreDep, learners: LearnersDep
) -> Response:
    """The softmax model that was trained: weights, intercepts, and how features are encoded."""
    record = store.version(name, version)
    trained, fitted = _softmax(record, learners)
    shown = presenters.parameters(record, trained, fitted)
    return answer(shown)


@router.post(
    "/adjusted-models",
    responses={200: {"model": ParametersOut}, **problems(400, 404, 406, 409, 413, 415, 422, 503)},
    openapi_extra=takes(AdjustedModelIn),
)
def create_adjusted_model(
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    store: StoreDep,
    nulls: NullsDep,
    learners: LearnersDep,
) -> Response:
    """The trained softmax model adjusted to stated priors, or to the estimate of a batch.

    Its posteriors are the adjusted posteriors of this service, calibration included; nothing is
    kept.
    """
    require_json(request)
    given = parse.envelope(AdjustedModelIn, payload.json())
    record = store.version(name, version)
    trained, fitted = _softmax(record, learners)
    source, scoring = record.source, learners.of(record)
    target, batch, said = parse.target_or_batch(given, source, scoring)
    asked = options.asked(given, source, scoring, batch)
    own, rows = fitted.intercepts, nulls.of(record)
    result = adjust_intercepts(source, own, None, target, batch, asked, rows)
    adjusted = Linear(result.scale * fitted.weights, result.intercepts)
    shown = presenters.parameters(record, trained, adjusted)
    shown.method = result.method
    shown.target_priors = presenters.by_class(source.classes, result.target)
    shown.warnings = presenters.warnings((*said, *result.warnings))
    return answer(shown)


def _softmax(record: VersionRecord, learners: LearnersDep) -> tuple[Trained, Linear]:
    if record.training is None:
        reason = (
            "the version was not trained in the service; bias-adjustments takes your intercepts"
        )
        raise MethodUnavailable("the model's parameters", reason)
    trained = learners.trained(record)
    if not isinstance(trained.fitted, Linear):
        learner = record.training["learner"]
        reason = f"{learner} is not a softmax of linear scores; adjust its posteriors instead"
        raise MethodUnavailable("the model's parameters", reason)
    return trained, trained.fitted
