"""/openapi.json: what FastAPI finds, and the bodies that handlers read themselves."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api import requests, responses
from app.api.payload import BATCHES
from app.api.problems import MEDIA_TYPE as PROBLEM
from app.api.wire import json, npy

REF = "#/components/schemas/{model}"
PROBLEM_SCHEMA = {"$ref": REF.format(model=responses.ProblemOut.__name__)}
SCALARS = {"string", "number", "integer", "boolean"}


def takes(*shapes: type[BaseModel]) -> dict[str, Any]:
    """A JSON body of one of these shapes, for ``openapi_extra``."""
    references = [{"$ref": REF.format(model=shape.__name__)} for shape in shapes]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"requestBody": {"required": True, "content": {json.MEDIA_TYPE: {"schema": schema}}}}


def takes_batch(shape: type[BaseModel]) -> dict[str, Any]:
    """A batch: JSON, or its rows in another format with the rest in the query."""
    extra = takes(shape)
    binary = {"schema": {"type": "string", "format": "binary"}}
    for media_type in BATCHES[1:]:
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


def install(app: FastAPI) -> None:
    """Serve a description that includes those bodies, and problems as problem+json only."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            description = get_openapi(
                title=app.title, version=app.version, summary=app.summary, routes=app.routes
            )
            components = description.setdefault("components", {}).setdefault("schemas", {})
            components.update(_inputs())
            for name in ("HTTPValidationError", "ValidationError"):
                components.pop(name, None)
            for path in description["paths"].values():
                for operation in path.values():
                    _mend(operation["responses"])
            app.openapi_schema = description
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]


def _inputs() -> dict[str, Any]:
    """The schemas of every request shape."""
    shapes = [
        shape
        for shape in vars(requests).values()
        if isinstance(shape, type) and issubclass(shape, requests.In)
    ]
    modes = [(shape, "validation") for shape in shapes]
    _, definitions = models_json_schema(modes, ref_template=REF)  # type: ignore[arg-type]
    found: dict[str, Any] = definitions["$defs"]
    return found


def _query(shape: type[BaseModel]) -> dict[str, Any]:
    """The fields that an NPY body leaves to the query: scalars, dotted where nested."""
    strings = {"type": "array", "items": {"type": "string"}}
    found: dict[str, Any] = {"columns": strings, "predictions": {"type": "string"}}
    if "labels" in shape.model_fields:
        found["labels"] = {"type": "string"}
    if "include" in shape.model_fields:
        found["include"] = strings
    for name, field in shape.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, requests.In):
            properties = inner.model_json_schema()["properties"]
            found.update({f"{name}.{key}": value for key, value in properties.items()})
        elif inner is str:
            found[name] = {"type": "string", "default": field.default}
        elif inner is float:
            found[name] = {"type": "number", "default": field.default}
    return found


def _mend(responses: dict[str, Any]) -> None:
    for status, response in responses.items():
        if status >= "4":
            response["content"] = {PROBLEM: {"schema": PROBLEM_SCHEMA}}
        elif status in ("200", "201"):
            response.setdefault("headers", {})
            if status == "201":
                text = {"schema": {"type": "string"}}
                response["headers"] = {"Location": text, "Idempotency-Replayed": text}
            if npy.MEDIA_TYPE in response.get("content", {}):
                binary = {"schema": {"type": "string", "format": "binary"}}
                for media_type in BATCHES[1:]:
                    response["content"][media_type] = binary
                names = ("Method", "Target-Priors", "Warnings")
                response["headers"] = {
                    f"Priorshift-{name}": {"schema": {"type": "string"}} for name in names
                }
