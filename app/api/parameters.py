"""The classifier of a version trained in the service, as parameters: its own, and adjusted."""

from fastapi import APIRouter
from starlette.responses import Response

from app.core.errors import MethodUnavailable
from app.core.learners.linear import Linear
from app.core.learners.trained import Trained
from app.estimation import adjust_intercepts
from app.http.body import only
from app.http.dependencies import ModelName, Selector, ServicesDep, answer, problems
from app.http.submission import Submit
from app.openapi import takes
from app.schemas import presenters
from app.schemas.batches import ParametersOut
from app.schemas.requests import AdjustedModelIn
from app.serving.classifiers import Classifiers
from models_store.records import VersionRecord

router = APIRouter(prefix="/v1/models/{name}/versions/{version}", tags=["batches"])


@router.get(
    "/parameters",
    response_model=ParametersOut,
    responses=problems(404, 409, 422, 503),
    dependencies=[only()],
)
def get_parameters(name: ModelName, version: Selector, services: ServicesDep) -> Response:
    """The softmax model that was trained: weights, intercepts, and how features are encoded."""
    record = services.store.version(name, version)
    return answer(presenters.parameters(record, *_softmax(record, services.classifiers)))


@router.post(
    "/adjusted-models",
    responses={200: {"model": ParametersOut}, **problems(400, 404, 406, 409, 413, 415, 422, 503)},
    openapi_extra=takes(AdjustedModelIn),
)
def create_adjusted_model(submit: Submit) -> Response:
    """The trained softmax model adjusted to stated priors, or to the estimate of a batch.

    Its posteriors are the adjusted posteriors of this service, calibration included; nothing is
    kept.
    """
    submission = submit.json(AdjustedModelIn)
    record, source = submission.record, submission.source
    trained, fitted = _softmax(record, submission.services.classifiers)
    target, batch, notes = submission.target
    request, rows = submission.request(batch), submission.rows
    result = adjust_intercepts(source, fitted.intercepts, None, target, batch, request, rows)
    adjusted = Linear(result.scale * fitted.weights, result.intercepts)
    shown = presenters.parameters(record, trained, adjusted)
    shown.method = result.method
    shown.target_priors = presenters.by_class(source.classes, result.target)
    shown.warnings = presenters.warnings((*notes, *result.warnings))
    return answer(shown)


def _softmax(record: VersionRecord, classifiers: Classifiers) -> tuple[Trained, Linear]:
    if record.training is None:
        reason = (
            "the version was not trained in the service; bias-adjustments takes your intercepts"
        )
        raise MethodUnavailable("the model's parameters", reason)
    trained = classifiers.trained(record)
    if not isinstance(trained.fitted, Linear):
        learner = record.training["learner"]
        reason = f"{learner} is not a softmax of linear scores; adjust its posteriors instead"
        raise MethodUnavailable("the model's parameters", reason)
    return trained, trained.fitted
