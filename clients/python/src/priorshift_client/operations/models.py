"""Models and aliases."""

from collections.abc import Sequence

from priorshift_client.bodies import json_body
from priorshift_client.calls import (
    Call,
    Listing,
    change,
    get,
    into,
    nothing,
    place,
    query,
    write,
)
from priorshift_client.registry import Alias, Model
from priorshift_client.sources import Source

PAGE = 100


def create_model(
    name: str,
    classes: Sequence[str],
    source: Source | None = None,
    *,
    description: str = "",
    idempotency_key: str | None = None,
) -> Call[Model]:
    """Register a model; with a source, its version 1 in the same step."""
    content = {
        "name": name,
        "classes": list(classes),
        "description": description,
        "source": None if source is None else source.content(),
    }
    patience = 0.0 if source is None else source.patience
    return write(place("models"), json_body(content), into(Model), idempotency_key, patience)


def get_model(name: str) -> Call[Model]:
    """A model with its aliases."""
    return get(place("models", name), into(Model))


def list_models(*, limit: int = PAGE) -> Listing[Model]:
    """Models by name; ``limit`` is the size of a page."""
    return Listing(place("models"), Model, query(limit=limit))


def describe_model(name: str, description: str) -> Call[Model]:
    """Change the description."""
    body = json_body({"description": description})
    return change("PATCH", place("models", name), body, into(Model))


def delete_model(name: str, *, force: bool = False) -> Call[None]:
    """Delete a model and its versions; with ``force``, its estimates too."""
    which = query(force=True if force else None)
    return change("DELETE", place("models", name), None, nothing, which)


def put_alias(model: str, alias: str, version: int) -> Call[Alias]:
    """Point an alias to a version."""
    where = place("models", model, "aliases", alias)
    return change("PUT", where, json_body({"version": version}), into(Alias))


def get_alias(model: str, alias: str) -> Call[Alias]:
    """The version that an alias points to."""
    return get(place("models", model, "aliases", alias), into(Alias))


def delete_alias(model: str, alias: str) -> Call[None]:
    """Remove an alias."""
    return change("DELETE", place("models", model, "aliases", alias), None, nothing)
