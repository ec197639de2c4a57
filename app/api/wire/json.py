"""JSON: strict text, strict numbers, no repeated names."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np
import orjson

from app.api.problems import Unparseable
from app.api.wire import matrices
from app.core.errors import Faults, InvalidInput, pointer
from app.core.names import Spellings, visible
from app.core.prevalence.arrays import Codes, Floats
from app.core.spelling import exact, find

MEDIA_TYPE = "application/json"
NUMBERS = {int, float}
LARGEST_COUNT = 2.0**53
PIECE = 20_000
"""Numbers that are written in one go, in about a millisecond."""
OBJECTS = 1_000
"""Items of a list of anything else that are."""
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def decode(body: bytes | bytearray) -> dict[str, Any]:
    """A JSON object; ``Unparseable`` for anything else, NaN and Infinity included.

    Large matrices of numbers come as arrays, everything else as Python's own types.
    """
    lifted = _lifted(body) if len(body) >= matrices.LARGE else None
    return _decoded(body) if lifted is None else lifted


def _lifted(body: bytes | bytearray) -> dict[str, Any] | None:
    """With the large matrices as arrays; None where there are none, or anything is odd."""
    found = matrices.lifted(body)
    if not found.matrices:
        return None
    left = dict(found.matrices)

    def placed(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
        value = dict(_object(pairs))
        for name, item in value.items():
            if isinstance(item, str) and item in left:
                value[name] = left.pop(item)
        return value

    try:
        value = _decoded(found.text, placed)
    except Unparseable:
        return None
    return None if left else value


def _decoded(
    body: bytes | bytearray,
    pairs: Callable[[list[tuple[str, Any]]], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    try:
        # The parser would guess UTF-16 too, and let lone surrogates through.
        text = body.decode("utf-8-sig")
        decoder = DECODER if pairs is None else _decoder(pairs)
        value = decoder.decode(text)
        if SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise Unparseable("the body is not UTF-8") from None
    except UnicodeEncodeError:
        raise Unparseable("the body holds a lone surrogate (\\ud800 to \\udfff)") from None
    except RecursionError:
        raise Unparseable("the JSON is nested too deeply") from None
    except ValueError as error:
        raise Unparseable(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Unparseable("the body must be a JSON object")
    return value


def encode(content: Mapping[str, Any]) -> bytes:
    """An object that may hold arrays, also by name; see ``pieces``."""
    if not any(map(_holds_arrays, content.values())):
        return _dumps(content)
    return b"".join(pieces(content))


def pieces(content: Mapping[str, Any]) -> Iterator[bytes]:
    """The same, piece by piece.

    The writer keeps the interpreter to itself while it writes; between the pieces other requests
    go on. Numbers are written with the fewest digits that give them again.
    """
    opening = b"{"
    for name, value in content.items():
        yield opening + _dumps(name) + b":"
        yield from _written(value)
        opening = b","
    yield b"}" if content else b"{}"


def _holds_arrays(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(item, np.ndarray) for item in value.values())
    return isinstance(value, np.ndarray) or (isinstance(value, list) and len(value) > OBJECTS)


def _written(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict) and _holds_arrays(value):
        yield from pieces(value)
    elif isinstance(value, list | np.ndarray) and len(value):
        yield from _items(value)
    else:
        yield _dumps(value if not isinstance(value, np.ndarray) else [])


def _items(values: list[Any] | Floats) -> Iterator[bytes]:
    """A list that is not empty."""
    write: Callable[[Any], bytes] = _array if isinstance(values, np.ndarray) else _dumps
    step = max(PIECE // values[0].size, 1) if isinstance(values, np.ndarray) else OBJECTS
    for start in range(0, len(values), step):
        yield (b"," if start else b"[") + write(values[start : start + step])[1:-1]
    yield b"]"


def _array(values: Floats) -> bytes:
    if not np.isfinite(values).all():
        raise ValueError("JSON has no number for NaN and infinity")
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)


def _dumps(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def matrix(values: Any, width: int, at: str) -> Floats:
    """A list of rows of ``width`` numbers as N × width float64; names the rows at fault."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        _require_width(values, width, at)
        return values
    if not isinstance(values, list):
        raise InvalidInput.at(at, "must be a list of rows")
    if not values:
        raise InvalidInput.at(at, "holds no rows; send at least one")
    rectangular = set(map(type, values)) == {list} and set(map(len, values)) == {width}
    if rectangular and set(map(type, chain.from_iterable(values))) <= NUMBERS:
        with suppress(OverflowError):
            return np.array(values, dtype=np.float64)
    faults = Faults()
    for index, row in enumerate(values):
        message = _row_fault(row, width)
        if message is not None:
            faults.add(f"{at}/{index}", message, index)
    faults.raise_if_any()
    raise AssertionError("a row at fault was not found")


def rows(values: Any, columns: Any, names: Sequence[str], at: str, order_at: str) -> Floats:
    """Rows of numbers in the order of ``names``, N × C float64.

    ``values``: a list of rows, in the order of ``columns`` where given; or a list by name.
    """
    if isinstance(values, dict):
        if columns is not None:
            raise InvalidInput.at(order_at, "orders rows; lists by name need no order")
        return _columnar(values, names, at)
    order = column_order(columns, names, order_at)
    found = matrix(values, len(names), at)
    return found if order is None else np.ascontiguousarray(found[:, order])


def _columnar(values: dict[str, Any], names: Sequence[str], at: str) -> Floats:
    lists = named_lists(values, names, at)
    return np.column_stack([_column(cells, at + pointer(name)) for name, cells in lists.items()])


def named_lists(
    values: dict[str, Any], names: Sequence[str], at: str
) -> dict[str, list[Any] | Floats]:
    """A list for each of ``names``, in this order, all of one length."""
    values, faults = _respelled(values, names, at), Faults()
    for name in names:
        if name not in values:
            faults.add(at + pointer(name), "is missing")
    faults.raise_if_any()
    for name in names:
        cells = values[name]
        if not (isinstance(cells, list) or (isinstance(cells, np.ndarray) and cells.ndim == 1)):
            raise InvalidInput.at(at + pointer(name), "must be a list")
        if not len(cells):
            raise InvalidInput.at(at + pointer(name), "holds no rows; send at least one")
        if len(cells) != len(values[names[0]]):
            message = f"has {len(cells)} rows, {shown(names[0])} has {len(values[names[0]])}"
            faults.add(at + pointer(name), message)
    faults.raise_if_any()
    return {name: values[name] for name in names}


def _column(values: list[Any] | Floats, at: str) -> Floats:
    if isinstance(values, np.ndarray):
        return values
    if set(map(type, values)) <= NUMBERS:
        with suppress(OverflowError):
            return np.array(values, dtype=np.float64)
    faults = Faults()
    for row, value in enumerate(values):
        message = _row_fault([value], 1)
        if message is not None:
            faults.add(f"{at}/{row}", message.removeprefix("value 0 "), row)
    faults.raise_if_any()
    raise AssertionError("a row at fault was not found")


def _require_width(values: Floats, width: int, at: str) -> None:
    faults = Faults()
    if values.shape[1] != width:
        for row in range(len(values)):
            message = f"has {values.shape[1]} values, must have {width}"
            faults.add(f"{at}/{row}", message, row)
    faults.raise_if_any()


def _row_fault(row: Any, width: int) -> str | None:
    if not isinstance(row, list):
        return f"must be a list of {width} numbers"
    if len(row) != width:
        return f"has {len(row)} values, must have {width}"
    for position, value in enumerate(row):
        if type(value) not in NUMBERS:
            return f"value {position} is {shown(value)}, must be a number"
        if isinstance(value, int) and abs(value) > 2**1000:
            return f"value {position} is too large for a number"
    return None


def named_reals(values: Any, names: Sequence[str], at: str, complete: bool = True) -> Floats:
    """An object of finite numbers keyed by name, in the order of ``names``.

    ``complete``: every name must be there; otherwise missing ones are zero.
    """
    if not isinstance(values, dict):
        raise InvalidInput.at(at, "must be an object with one number per name")
    values, faults = _respelled(values, names, at), Faults()
    for name in names:
        value = values.get(name, 0)
        if complete and name not in values:
            faults.add(at + pointer(name), "is missing")
        elif type(value) not in NUMBERS or not abs(value) < 1e300:
            faults.add(at + pointer(name), "must be a finite number")
    faults.raise_if_any()
    return np.array([float(values.get(name, 0)) for name in names])


def _respelled(values: dict[str, Any], names: Sequence[str], at: str) -> dict[str, Any]:
    """The same by ``names`` as they are spelled; every key must be one of them."""
    known, faults = Spellings(names), Faults()
    found: dict[str, Any] = {}
    for given, name in zip(values, known.respelled(list(values)), strict=True):
        if name not in known.exact:
            faults.add(at + pointer(given), f"is not one of {_listed(names)}")
        elif name in found:
            faults.add(at + pointer(given), "is given twice, in two Unicode normal forms")
        found[name] = values[given]
    faults.raise_if_any()
    return found


def named_numbers(values: Any, names: Sequence[str], at: str, complete: bool) -> Floats:
    """The same for numbers that are not negative."""
    found = named_reals(values, names, at, complete)
    faults = Faults()
    for k in np.flatnonzero(found < 0):
        faults.add(at + pointer(names[int(k)]), "must not be negative")
    faults.raise_if_any()
    return found


def named_counts(values: Any, names: Sequence[str], at: str, complete: bool) -> Floats:
    """The same for whole numbers of rows."""
    counts = named_numbers(values, names, at, complete)
    faults = Faults()
    for k in np.flatnonzero((counts != np.floor(counts)) | (counts > LARGEST_COUNT)):
        faults.add(at + pointer(names[int(k)]), "must be a whole number of rows")
    faults.raise_if_any()
    return counts


def codes(values: Any, names: Sequence[str], at: str, partial: bool = False) -> Codes:
    """A list of labels as positions in ``names``; ``partial``: null is allowed, and is -1.

    Numbers and truth values stand for the name that they spell.
    """
    if not isinstance(values, list):
        raise InvalidInput.at(at, "must be a list of strings")
    if not values:
        raise InvalidInput.at(at, "holds no rows; send at least one")
    index: dict[str | None, int] = dict(Spellings(names).index().items())
    if partial:
        index[None] = -1
    types = {str, type(None)} if partial else {str}
    if set(map(type, values)) <= types and set(values) <= set(index):
        return np.fromiter(map(index.__getitem__, values), np.intp, len(values))
    faults = Faults()
    found = np.empty(len(values), np.intp)
    for row, value in enumerate(values):
        place = index.get(None) if value is None else None
        if isinstance(value, str | int | float) and exact(value):
            place = find(value, index)
        if place is not None:
            found[row] = place
        elif faults.full:
            faults.count_another()
        else:
            what = "" if isinstance(value, str) else "is not a string and "
            faults.add(f"{at}/{row}", f"{shown(value)} {what}is not one of {_listed(names)}", row)
    faults.raise_if_any()
    return found


def column_order(columns: Any, names: Sequence[str], at: str) -> list[int] | None:
    """Where each of ``names`` stands in ``columns``; None where the order is the same."""
    if columns is None:
        return None
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        raise InvalidInput.at(at, "must be a list of strings")
    known, faults = Spellings(names), Faults()
    place: dict[str, int] = {}
    columns = known.respelled(columns)
    for position, column in enumerate(columns):
        if column in place:
            faults.add(f"{at}/{position}", f"repeats {shown(column)}")
        elif column not in known.exact:
            faults.add(f"{at}/{position}", f"{shown(column)} is not one of {_listed(names)}")
        place[column] = position
    for name in names:
        if name not in place:
            faults.add(at, f"{shown(name)} is missing")
    faults.raise_if_any()
    return None if list(columns) == list(names) else [place[name] for name in names]


def shown(value: Any) -> str:
    """A value as it may stand in a message."""
    if isinstance(value, list | dict | np.ndarray):
        return "an object" if isinstance(value, dict) else "a list"
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:60] + "…"


def _listed(names: Sequence[str]) -> str:
    first = ", ".join(visible(name[:60]) for name in names[:10])
    return first if len(names) <= 10 else f"{first}, … ({len(names)} in all)"


def _object(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the name {shown(name)} is repeated in one object")
            seen.add(name)
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _decoder(pairs: Callable[[list[tuple[str, Any]]], Mapping[str, Any]]) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=pairs, parse_constant=_constant)


DECODER = _decoder(_object)
"""Made once: making it takes longer than reading a short line."""
