"""Versions: immutable source models."""

from priorshift_client.bodies import json_body
from priorshift_client.calls import Call, Listing, get, into, place, query, write
from priorshift_client.operations.models import PAGE
from priorshift_client.registry import Scorecard, SoftmaxModel, Version
from priorshift_client.sources import Source


def register_version(
    model: str, source: Source, *, idempotency_key: str | None = None
) -> Call[Version]:
    """Register a source as the next version; the same content again is the same version."""
    body = json_body({"source": source.content()})
    where = place("models", model, "versions")
    return write(where, body, into(Version), idempotency_key, source.patience)


def get_version(model: str, version: int | str = "latest") -> Call[Version]:
    """A version: a number, "latest" or "@alias"."""
    return get(place("models", model, "versions", version), into(Version))


def list_versions(model: str, *, limit: int = PAGE) -> Listing[Version]:
    """Versions of a model, newest first; ``limit`` is the size of a page."""
    return Listing(place("models", model, "versions"), Version, query(limit=limit))


def get_scorecard(model: str, version: int | str = "latest") -> Call[Scorecard]:
    """What each method was worth on the version's own validation rows."""
    return get(place("models", model, "versions", version, "scorecard"), into(Scorecard))


def get_parameters(model: str, version: int | str = "latest") -> Call[SoftmaxModel]:
    """The softmax model that the service trained: weights, intercepts, how features enter."""
    return get(place("models", model, "versions", version, "parameters"), into(SoftmaxModel))
