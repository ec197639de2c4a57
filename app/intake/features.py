"""Features to match: of labelled rows at registration, and of batches."""

from app.core.arrays import Codes
from app.core.errors import InvalidInput
from app.core.prevalence.matching.version import MatchingOptions, ReferenceRows
from app.core.prevalence.source import SourceModel, ValidationSet
from app.estimation.methods import MATCHING
from app.estimation.request import FeatureBatch
from app.formats import table
from app.formats.frame import Frame
from app.schemas.requests import BatchIn, MatchingIn, ValidationIn

MOST_NUMBERS = 20_000_000
"""Classes × dimension, and dimension × features."""


def reference(given: ValidationIn, labels: Codes, at: str) -> ReferenceRows | None:
    """The labelled rows of features, where there are some."""
    if given.features is None:
        if given.feature_names is not None:
            raise InvalidInput.at(f"{at}/feature_names", "names features, which are missing")
        return None
    names = table.feature_names(given.features, given.feature_names, at)
    rows = table.table(given.features, names, {}, False, False, f"{at}/features")
    if len(rows) != len(labels):
        message = f"has {len(rows)} rows for {len(labels)} labels"
        raise InvalidInput.at(f"{at}/features", message)
    return ReferenceRows(labels, rows, names)


def options(
    given: MatchingIn | None,
    found: ReferenceRows | None,
    validation: ValidationSet | None,
    names: tuple[str, ...],
    at: str,
) -> tuple[ReferenceRows | None, MatchingOptions]:
    """What is matched, and how; the posteriors of the validation set where these are asked for."""
    asked = MatchingOptions() if given is None else MatchingOptions(**given.model_dump())
    at = f"{at}/matching"
    if asked.feature_map == "posteriors":
        if found is not None:
            message = "matches posteriors; leave validation.features out, or match features"
            raise InvalidInput.at(f"{at}/feature_map", message)
        if validation is None:
            message = "matches the posteriors of a validation set; register one"
            raise InvalidInput.at(f"{at}/feature_map", message)
        found = ReferenceRows(validation.labels, validation.posteriors, names)
    if found is None:
        if given is not None:
            raise InvalidInput.at(at, "matches features; register validation.features")
        return None, asked
    for what, other in ((f"{len(names)} classes", len(names)), ("the features", len(found.names))):
        if asked.dimension * other > MOST_NUMBERS:
            message = f"is too large for {what}; at most {MOST_NUMBERS // other} is allowed"
            raise InvalidInput.at(f"{at}/dimension", message)
    return found, asked


def takes_features(model: SourceModel) -> bool:
    """Whether features sent to this version are matched, not scored."""
    return model.matching is not None and model.matching.options.feature_map == "features"


def listed(given: BatchIn, model: SourceModel) -> FeatureBatch:
    """Rows of features, in the order of ``columns`` where given."""
    assert model.matching is not None
    return FeatureBatch(table.batch(given.features, given.columns, model.matching.names, {}, False))


def wants(given: BatchIn, model: SourceModel, frame: Frame) -> bool:
    """Whether the features of a table are meant: asked for, or all that there is."""
    if not takes_features(model) or model.matching is None or not frame.has(model.matching.names):
        return False
    return getattr(given, "method", "auto") in MATCHING or not frame.has(model.classes)


def framed(model: SourceModel, frame: Frame) -> FeatureBatch:
    """The columns of a table that are features."""
    assert model.matching is not None
    return FeatureBatch(table.framed(frame, model.matching.names, {}, False))
