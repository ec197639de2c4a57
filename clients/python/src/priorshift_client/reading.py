"""From JSON to dataclasses by their annotations; fields that are not known are left out."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")


def read(kind: type[T], value: Any) -> T:
    """A dataclass from a JSON object; ``KeyError`` or ``TypeError`` where they do not fit."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{kind.__name__} is an object, not {type(value).__name__}")
    values: dict[str, Any] = {}
    hints = _hints(cast(Any, kind))
    for field in fields(kind):  # type: ignore[arg-type]  # kind is a dataclass
        key = _key(field)
        if key in value:
            values[field.name] = _value(hints[field.name], value[key])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise KeyError(key)
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _key(field: Field[Any]) -> str:
    key: str = field.metadata.get("key", field.name)
    return key


def _value(hint: Any, value: Any) -> Any:
    """The value as its annotation says."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or origin is Literal:
        return value
    if origin in (Union, UnionType):
        return _either([kind for kind in inner if kind is not NoneType], value)
    if origin is tuple:
        return tuple(_value(inner[0], item) for item in value)
    if origin is dict:
        return {str(name): _value(inner[1], item) for name, item in value.items()}
    if origin is np.ndarray:
        return np.array(value, dtype=np.float64)
    return _plain(hint, value)


def _either(kinds: list[Any], value: Any) -> Any:
    """Of a union: None, the only kind there is besides, or JSON's own."""
    if value is None or len(kinds) > 1:
        return value
    return _value(kinds[0], value)


def _plain(hint: Any, value: Any) -> Any:
    if hasattr(hint, "of_json"):
        return hint.of_json(value)
    if is_dataclass(hint):
        return read(hint, value)  # type: ignore[arg-type]  # a class, not an instance
    if hint is datetime:
        return datetime.fromisoformat(value)
    if hint is float and type(value) is int:
        return float(value)
    if not isinstance(value, hint):
        raise TypeError(f"expected {hint.__name__}, got {type(value).__name__}")
    return value
