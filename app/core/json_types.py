"""JSON that came from outside or from a file: each reader finds out what its values are."""

from typing import Any

JsonValue = Any
JsonList = list[Any]
JsonObject = dict[str, Any]
