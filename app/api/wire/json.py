"""JSON: strict text, strict numbers, no repeated names."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

from app.api.problems import Unparseable
from app.core.errors import Fault, InvalidInput
from app.core.prevalence.arrays import FAULTS_SHOWN, Codes, Floats

MEDIA_TYPE = "application/json"
NUMBERS = {int, float}


def decode(body: bytes) -> dict[str, Any]:
    """A JSON object; ``Unparseable`` for anything else, NaN and Infinity included."""
    try:
        value = json.loads(body, object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError:
        raise Unparseable("the body is not UTF-8") from None
    except RecursionError:
        raise Unparseable("the JSON is nested too deeply") from None
    except ValueError as error:
        raise Unparseable(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Unparseable("the body must be a JSON object")
    return value


def matrix(values: Any, width: int, pointer: str) -> Floats:
    """A list of rows of ``width`` numbers as N × width float64; names the rows at fault."""
    if not isinstance(values, list):
        raise InvalidInput.at(pointer, "must be a list of rows")
    if not values:
        raise InvalidInput.at(pointer, "holds no rows; send at least one")
    rectangular = set(map(type, values)) == {list} and set(map(len, values)) == {width}
    if rectangular and set(map(type, chain.from_iterable(values))) <= NUMBERS:
        with suppress(OverflowError):
            return np.array(values, dtype=np.float64)
    faults = []
    count = 0
    for index, row in enumerate(values):
        message = _row_fault(row, width)
        if message is not None:
            count += 1
            if count <= FAULTS_SHOWN:
                faults.append(Fault(f"{pointer}/{index}", message, index))
    raise InvalidInput(faults, count)


def _row_fault(row: Any, width: int) -> str | None:
    if not isinstance(row, list):
        return f"must be a list of {width} numbers"
    if len(row) != width:
        return f"has {len(row)} values, must have {width}"
    for position, value in enumerate(row):
        if type(value) not in NUMBERS:
            return f"value {position} is {json.dumps(value)[:40]}, must be a number"
        if isinstance(value, int) and abs(value) > 2**1000:
            return f"value {position} is too large for a number"
    return None


def named_numbers(values: Any, names: Sequence[str], pointer: str, complete: bool) -> Floats:
    """An object of finite numbers keyed by name, in the order of ``names``.

    ``complete``: every name must be there; otherwise missing ones are zero.
    """
    if not isinstance(values, dict):
        raise InvalidInput.at(pointer, "must be an object with one number per name")
    known = set(names)
    faults = [
        Fault(f"{pointer}/{name}", f"is not one of {_listed(names)}")
        for name in values
        if name not in known
    ]
    if complete:
        faults += [Fault(f"{pointer}/{n}", "is missing") for n in names if n not in values]
    for name in names:
        value = values.get(name, 0)
        if type(value) not in NUMBERS or not abs(value) < 1e300:
            faults.append(Fault(f"{pointer}/{name}", "must be a finite number"))
        elif value < 0:
            faults.append(Fault(f"{pointer}/{name}", "must not be negative"))
    if faults:
        raise InvalidInput(faults[:FAULTS_SHOWN], len(faults))
    return np.array([float(values.get(name, 0)) for name in names])


def codes(values: Any, names: Sequence[str], pointer: str) -> Codes:
    """A list of labels as positions in ``names``."""
    if not isinstance(values, list):
        raise InvalidInput.at(pointer, "must be a list of strings")
    if not values:
        raise InvalidInput.at(pointer, "holds no rows; send at least one")
    index = {name: position for position, name in enumerate(names)}
    if set(map(type, values)) == {str} and set(values) <= set(names):
        return np.fromiter(map(index.__getitem__, values), np.intp, len(values))
    faults = []
    count = 0
    for row, value in enumerate(values):
        if isinstance(value, str) and value in index:
            continue
        count += 1
        if count <= FAULTS_SHOWN:
            shown = json.dumps(value)[:60]
            if isinstance(value, str):
                message = f"{shown} is not one of {_listed(names)}"
            else:
                message = f"{shown} is not a string; labels are strings, write them in quotes"
            faults.append(Fault(f"{pointer}/{row}", message, row))
    raise InvalidInput(faults, count)


def column_order(columns: Any, names: Sequence[str], pointer: str) -> list[int] | None:
    """Where each of ``names`` stands in ``columns``; None where the order is the same."""
    if columns is None:
        return None
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        raise InvalidInput.at(pointer, "must be a list of strings")
    faults = []
    seen: set[str] = set()
    for position, column in enumerate(columns):
        if column in seen:
            faults.append(Fault(f"{pointer}/{position}", f"repeats {column}"))
        elif column not in names:
            message = f"{column} is not one of {_listed(names)}"
            faults.append(Fault(f"{pointer}/{position}", message))
        seen.add(column)
    faults += [Fault(pointer, f"{name} is missing") for name in names if name not in seen]
    if faults:
        raise InvalidInput(faults[:FAULTS_SHOWN], len(faults))
    if list(columns) == list(names):
        return None
    return [columns.index(name) for name in names]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:10])
    return shown if len(names) <= 10 else f"{shown}, … ({len(names)} in all)"


def _object(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the name {name!r} is repeated in one object")
            seen.add(name)
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
