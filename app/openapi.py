"""/openapi.json: what FastAPI finds, and the bodies that handlers read themselves."""

from collections.abc import Sequence
from http import HTTPStatus
from types import ModuleType
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.formats import json, media_types, npy
from app.http.problems import MEDIA_TYPE as PROBLEM
from app.http.scopes import RULES
from app.kinds import registry as kinds
from app.schemas import examples, requests
from app.schemas.base import ProblemOut

REF = "#/components/schemas/{model}"
PROBLEM_SCHEMA = {"$ref": REF.format(model=ProblemOut.__name__)}
KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key. While the service has no keys it asks for none.",
}
TEXT = {"schema": {"type": "string"}}
SECONDS = {"schema": {"type": "integer", "minimum": 0}}
REPLAYED = {"Idempotency-Replayed": TEXT}
Description = dict[str, Any]
"""A part of the document that describes the API."""
HEADERS = {
    "201": {"Location": TEXT},
    "401": {"WWW-Authenticate": TEXT},
    "429": {"Retry-After": SECONDS},
    "503": {"Retry-After": SECONDS},
}


def takes(*shapes: type[BaseModel]) -> Description:
    """A JSON body of one of these shapes, for ``openapi_extra``."""
    references = [{"$ref": REF.format(model=shape.__name__)} for shape in shapes]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"requestBody": {"required": True, "content": {json.MEDIA_TYPE: {"schema": schema}}}}


def takes_batch(shape: type[BaseModel]) -> Description:
    """A batch: JSON, or its rows in another format with the rest in the query."""
    extra = takes(shape)
    binary = {"schema": {"type": "string", "format": "binary"}}
    for media_type in media_types.NAMES[1:]:
        extra["requestBody"]["content"][media_type] = binary
    extra["parameters"] = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "schema": schema,
            "description": "With bodies other than JSON, where it is part of the body",
        }
        for name, schema in _query(shape).items()
    ]
    return extra


def install(app: FastAPI, *more: ModuleType) -> None:
    """Serve a description that includes those bodies, and problems as problem+json only.

    ``more``: modules of further request shapes.
    """

    def describe() -> dict[str, object]:
        if app.openapi_schema is None:
            description = get_openapi(
                title=app.title, version=app.version, summary=app.summary, routes=app.routes
            )
            components = description.setdefault("components", {}).setdefault("schemas", {})
            components.update(_inputs(more))
            for name in ("HTTPValidationError", "ValidationError"):
                components.pop(name, None)
            description["components"]["securitySchemes"] = {"key": KEY}
            for address, path in description["paths"].items():
                for method, operation in path.items():
                    _guard(operation, RULES[method.upper(), address])
                    _mend(operation["responses"])
                    if _repeatable(operation):
                        _tell_replays(operation["responses"])
            examples.add(description)
            app.openapi_schema = description
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]


def _inputs(more: Sequence[ModuleType]) -> dict[str, object]:
    """The schemas of every request shape."""
    modules = [value for module in (requests, *more) for value in vars(module).values()]
    given = [*modules, *kinds.shapes("adapts"), *kinds.shapes("predicts")]
    shapes = [s for s in given if isinstance(s, type) and issubclass(s, requests.In)]
    modes = [(shape, "validation") for shape in shapes]
    _, definitions = models_json_schema(modes, ref_template=REF)  # type: ignore[arg-type]
    found: Description = definitions["$defs"]
    return found


def _query(shape: type[BaseModel]) -> Description:
    """The fields that an NPY body leaves to the query: scalars, dotted where nested."""
    properties = shape.model_json_schema()["properties"]
    strings = {"type": "array", "items": {"type": "string"}}
    kinds = {"type": "string", "enum": ["posteriors", "features"], "default": "posteriors"}
    found: Description = {"columns": strings, "predictions": {"type": "string"}, "rows": kinds}
    if "labels" in shape.model_fields:
        found["labels"] = {"type": "string"}
    if "include" in shape.model_fields:
        found["include"] = strings
    for name, field in shape.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, requests.In):
            nested = inner.model_json_schema()["properties"]
            found |= {f"{name}.{key}": value for key, value in nested.items() if _scalar(value)}
        elif _scalar(properties[name]):
            found[name] = properties[name]
    return found


def _scalar(schema: Description) -> bool:
    """Whether one word of a query can say it."""
    kinds = schema.get("anyOf", [schema])
    return any(kind.get("type") in ("string", "number", "integer", "boolean") for kind in kinds)


def _guard(operation: Description, rule: str | None) -> None:
    """What any caller of it may meet: the doors, and where there is a body, its bounds."""
    codes = [403, 421, 503]
    if rule is not None:
        operation["security"] = [{"key": []}]
        codes += [401]
    if "requestBody" in operation:
        codes += [400, 408, 413, 415, 429, 503]
    if _repeatable(operation):
        codes += [409, 422]
    for code in codes:
        known = {"description": HTTPStatus(code).phrase}
        operation["responses"].setdefault(str(code), known)


def _repeatable(operation: Description) -> bool:
    """Whether it takes an Idempotency-Key."""
    return "idempotency-key" in {p["name"].lower() for p in operation.get("parameters", [])}


def _tell_replays(responses: Description) -> None:
    for status, response in responses.items():
        if status < "3":
            response["headers"] = {**response.get("headers", {}), **REPLAYED}


def _mend(responses: Description) -> None:
    for status, response in responses.items():
        if status >= "4":
            response["content"] = {PROBLEM: {"schema": PROBLEM_SCHEMA}}
        if status in HEADERS:
            response["headers"] = HEADERS[status]
        if status == "200" and npy.MEDIA_TYPE in response.get("content", {}):
            binary = {"schema": {"type": "string", "format": "binary"}}
            for media_type in media_types.NAMES[1:]:
                response["content"][media_type] = binary
            names = ("Method", "Target-Priors", "Warnings")
            response["headers"] = {f"Priorshift-{name}": TEXT for name in names}
