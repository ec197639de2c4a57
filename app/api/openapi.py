"""The bodies that handlers read themselves, documented in /openapi.json."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api.wire import json, npy

REF = "#/components/schemas/{model}"
_documented: dict[str, type[BaseModel]] = {}


def takes(shape: type[BaseModel]) -> dict[str, Any]:
    """A JSON body of this shape, for ``openapi_extra``."""
    _documented[shape.__name__] = shape
    schema = {"$ref": REF.format(model=shape.__name__)}
    return {"requestBody": {"required": True, "content": {json.MEDIA_TYPE: {"schema": schema}}}}


def takes_batch(shape: type[BaseModel]) -> dict[str, Any]:
    """A batch: JSON, or the posteriors as NPY with the rest in the query."""
    extra = takes(shape)
    binary = {"schema": {"type": "string", "format": "binary"}}
    extra["requestBody"]["content"][npy.MEDIA_TYPE] = binary
    return extra


def install(app: FastAPI) -> None:
    """Serve a description that includes those bodies."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            description = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                routes=app.routes,
            )
            inputs = [(shape, "validation") for shape in _documented.values()]
            _, definitions = models_json_schema(inputs, ref_template=REF)  # type: ignore[arg-type]
            components = description.setdefault("components", {}).setdefault("schemas", {})
            components.update(definitions["$defs"])
            app.openapi_schema = description
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]
