"""JSON: strict text, strict numbers, no repeated names, nothing without bounds."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

import numpy as np
import orjson

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.errors import Faults, InvalidInput, clipped, pointer
from app.core.json_types import JsonList, JsonObject, JsonValue
from app.core.names import Spellings, visible
from app.core.spelling import exact, find
from app.formats import json_matrices
from app.formats.errors import TooLarge, Unparseable
from app.formats.json_reader import (
    LONGEST_NAME,
    MOST_NAMES,
    PIECE,
    SURROGATE,
    TOO_MANY_DIGITS,
    JsonReader,
    require_text,
)

MEDIA_TYPE = "application/json"
NUMBERS = {int, float}
LARGEST_COUNT = 2.0**53
NUMBERS_AT_A_TIME = 20_000
"""Numbers that are written in one go, in about a millisecond."""
OBJECTS = 1_000
"""Items of a list of anything else that are."""
BLOCK = 50_000
"""Numbers or labels that are looked at in one go."""
LONGEST_SHOWN = 60
"""Characters of a value in a message."""


def decode(body: bytes | bytearray, most_rows: int | None = None) -> JsonObject:
    """A JSON object; ``Unparseable`` for anything else, NaN and Infinity included.

    Large matrices of numbers come as arrays, everything else as Python's own types. Long lists are
    refused from ``most_rows`` on, as are long names and texts.
    """
    lifted = _lifted(body, most_rows) if len(body) >= json_matrices.LARGE else None
    return _decoded(body, DECODER, most_rows) if lifted is None else lifted


def _lifted(body: bytes | bytearray, most_rows: int | None) -> dict[str, object] | None:
    """With the large matrices as arrays; None where there are none, or anything is odd."""
    found = json_matrices.lifted(body)
    if not found.matrices:
        return None
    left = dict(found.matrices)

    def placed(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
        value = dict(_object(pairs))
        for name, item in value.items():
            if isinstance(item, str) and item in left:
                value[name] = left.pop(item)
        return value

    try:
        value = _decoded(found.text, _decoder(placed), most_rows)
    except Unparseable:
        return None
    return None if left else value


def _decoded(
    body: bytes | bytearray, decoder: json.JSONDecoder, most_rows: int | None
) -> dict[str, object]:
    value = (
        _small(body, decoder) if len(body) < PIECE else JsonReader(body, decoder, most_rows).value()
    )
    if not isinstance(value, dict):
        raise Unparseable("the body must be a JSON object")
    return value


def _small(body: bytes | bytearray, decoder: json.JSONDecoder) -> object:
    """In one go."""
    try:
        # The parser would guess UTF-16 too, and let lone surrogates through.
        value = decoder.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Unparseable("the body is not UTF-8") from None
    except RecursionError:
        raise Unparseable("the JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise Unparseable(f"the body is not JSON: {error}") from None
    except ValueError:
        raise Unparseable(TOO_MANY_DIGITS) from None
    if SURROGATE.search(body):
        require_text(value)
    return value


def encode(content: Mapping[str, JsonValue]) -> bytes:
    """An object that may hold arrays, also by name; see ``pieces``."""
    if not any(map(_holds_arrays, content.values())):
        return _dumps(content)
    return b"".join(pieces(content))


def pieces(content: Mapping[str, object]) -> Iterator[bytes]:
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


def _holds_arrays(value: object) -> bool:
    if isinstance(value, dict):
        return any(isinstance(item, np.ndarray) for item in value.values())
    return isinstance(value, np.ndarray) or (isinstance(value, list) and len(value) > OBJECTS)


def _written(value: object) -> Iterator[bytes]:
    if isinstance(value, dict) and _holds_arrays(value):
        yield from pieces(value)
    elif isinstance(value, list | np.ndarray) and len(value):
        yield from _items(value)
    else:
        yield _dumps(value if not isinstance(value, np.ndarray) else [])


def _items(values: JsonList | Floats) -> Iterator[bytes]:
    """A list that is not empty."""
    write: Callable[[JsonValue], bytes] = _array if isinstance(values, np.ndarray) else _dumps
    step = (
        max(NUMBERS_AT_A_TIME // values[0].size, 1) if isinstance(values, np.ndarray) else OBJECTS
    )
    for start in range(0, len(values), step):
        yield (b"," if start else b"[") + write(values[start : start + step])[1:-1]
    yield b"]"


def _array(values: Floats) -> bytes:
    if not np.isfinite(values).all():
        raise ValueError("JSON has no number for NaN and infinity")
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)


def _dumps(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def matrix(values: object, width: int, at: str) -> Floats:
    """A list of rows of ``width`` numbers as N × width float64; names the rows at fault."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        _require_width(values, width, at)
        return values
    if not isinstance(values, list):
        raise InvalidInput.at(at, "must be a list of rows")
    if not values:
        raise InvalidInput.at(at, "holds no rows; send at least one")
    step = max(BLOCK // max(width, 1), 1)
    found = in_blocks(values, lambda rows: _rectangle(rows, width), step)
    if found is None:
        raise refused(values, lambda row, brief: _row_fault(row, width, brief), at)
    return found


def in_blocks(
    values: JsonList, convert: Callable[[JsonList], Floats | None], step: int
) -> Floats | None:
    """A list as an array, ``step`` items at a time; None if one of the blocks is.

    numpy and the builtins keep the interpreter to themselves while they look at a list.
    """
    parts = []
    for start in range(0, len(values), step):
        part = convert(values[start : start + step])
        if part is None:
            return None
        parts.append(part)
    return np.concatenate(parts)


def numbers(values: list[object]) -> Floats | None:
    """A list of numbers that is not empty as N float64; None if something else is in it."""
    return in_blocks(values, _floats, BLOCK)


def _floats(values: list[object]) -> Floats | None:
    if set(map(type, values)) <= NUMBERS:
        with suppress(OverflowError):
            return np.array(values, dtype=np.float64)
    return None


def _rectangle(rows: JsonList, width: int) -> Floats | None:
    if set(map(type, rows)) == {list} and set(map(len, rows)) == {width}:
        cells = _floats(list(chain.from_iterable(rows)))
        return None if cells is None else cells.reshape(len(rows), width)
    return None


def refused(
    values: list[object], fault: Callable[[object, bool], str | None], at: str
) -> InvalidInput:
    """What is wrong with rows of which some are at ``fault``; that is told whether words matter."""
    faults = Faults()
    for row, value in enumerate(deadline.checked(values)):
        message = fault(value, faults.full)
        if message is not None:
            faults.add("" if faults.full else f"{at}/{row}", message, row)
    return faults.error()


def rows(
    values: JsonValue, columns: JsonValue, names: Sequence[str], at: str, order_at: str
) -> Floats:
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


def _columnar(values: dict[str, object], names: Sequence[str], at: str) -> Floats:
    lists = named_lists(values, names, at)
    return np.column_stack([_column(cells, at + pointer(name)) for name, cells in lists.items()])


def named_lists(values: JsonObject, names: Sequence[str], at: str) -> dict[str, JsonList | Floats]:
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


def _column(values: list[object] | Floats, at: str) -> Floats:
    if isinstance(values, np.ndarray):
        return values
    found = numbers(values)
    if found is None:
        raise refused(values, _cell_fault, at)
    return found


def _require_width(values: Floats, width: int, at: str) -> None:
    faults = Faults()
    if values.shape[1] != width:
        for row in faults.some(range(len(values))):
            message = f"has {values.shape[1]} values, must have {width}"
            faults.add(f"{at}/{row}", message, row)
    faults.raise_if_any()


def _row_fault(row: object, width: int, brief: bool) -> str | None:
    if not isinstance(row, list):
        return f"must be a list of {width} numbers"
    if len(row) != width:
        return f"has {len(row)} values, must have {width}"
    for position, value in enumerate(row):
        if type(value) not in NUMBERS:
            return f"value {position} is {'…' if brief else shown(value)}, must be a number"
        if isinstance(value, int) and abs(value) > 2**1000:
            return f"value {position} is too large for a number"
    return None


def _cell_fault(cell: object, brief: bool) -> str | None:
    message = _row_fault([cell], 1, brief)
    return None if message is None else message.removeprefix("value 0 ")


def named_reals(values: JsonValue, names: Sequence[str], at: str, complete: bool = True) -> Floats:
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


def _respelled(values: JsonObject, names: Sequence[str], at: str) -> JsonObject:
    """The same by ``names`` as they are spelled; every key must be one of them."""
    known, faults = Spellings(names), Faults()
    found: JsonObject = {}
    for given, name in zip(values, known.respelled(list(values)), strict=True):
        if name not in known.exact:
            faults.add(at + pointer(given), f"is not one of {_listed(names)}")
        elif name in found:
            faults.add(at + pointer(given), "is given twice, in two Unicode normal forms")
        found[name] = values[given]
    faults.raise_if_any()
    return found


def named_numbers(values: object, names: Sequence[str], at: str, complete: bool) -> Floats:
    """The same for numbers that are not negative."""
    found = named_reals(values, names, at, complete)
    faults = Faults()
    for k in np.flatnonzero(found < 0):
        faults.add(at + pointer(names[int(k)]), "must not be negative")
    faults.raise_if_any()
    return found


def named_counts(values: object, names: Sequence[str], at: str, complete: bool) -> Floats:
    """The same for whole numbers of rows."""
    counts = named_numbers(values, names, at, complete)
    faults = Faults()
    for k in np.flatnonzero((counts != np.floor(counts)) | (counts > LARGEST_COUNT)):
        faults.add(at + pointer(names[int(k)]), "must be a whole number of rows")
    faults.raise_if_any()
    return counts


def codes(values: object, names: Sequence[str], at: str, partial: bool = False) -> Codes:
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
    known, found = set(index), []
    for start in range(0, len(values), BLOCK):
        some = values[start : start + BLOCK]
        if not (set(map(type, some)) <= types and set(some) <= known):
            return _spelled_codes(values, index, names, at)
        found.append(np.fromiter(map(index.__getitem__, some), np.intp, len(some)))
    return np.concatenate(found)


def _spelled_codes(
    values: JsonList, index: Mapping[str | None, int], names: Sequence[str], at: str
) -> Codes:
    """The same one by one; names the rows that spell none."""
    faults, found = Faults(), np.empty(len(values), np.intp)
    for row, value in enumerate(deadline.checked(values)):
        place = index.get(None) if value is None else None
        if isinstance(value, str | int | float) and exact(value):
            place = find(value, index)
        if place is not None:
            found[row] = place
        elif faults.full:
            faults.add("", "", row)
        else:
            what = "" if isinstance(value, str) else "is not a string and "
            faults.add(f"{at}/{row}", f"{shown(value)} {what}is not one of {_listed(names)}", row)
    faults.raise_if_any()
    return found


def column_order(columns: object, names: Sequence[str], at: str) -> list[int] | None:
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


def shown(value: JsonValue) -> str:
    """A value as it may stand in a message."""
    if isinstance(value, list | dict | np.ndarray):
        return "an object" if isinstance(value, dict) else "a list"
    some = value[:LONGEST_SHOWN] if isinstance(value, str) else value
    return clipped(visible(json.dumps(some, ensure_ascii=False)), LONGEST_SHOWN + 1)


def _listed(names: Sequence[str]) -> str:
    first = ", ".join(visible(name[:LONGEST_SHOWN]) for name in names[:10])
    return first if len(names) <= 10 else f"{first}, … ({len(names)} in all)"


def _object(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Unparseable(f"the name {shown(name)} is repeated in one object")
            seen.add(name)
    if len(value) > MOST_NAMES:
        raise TooLarge(f"an object has more than {MOST_NAMES} names")
    require_short(value)
    return value


def require_short(names: Collection[str]) -> None:
    """``InvalidInput`` for names so long that nothing has them."""
    if max(map(len, names), default=0) > LONGEST_NAME:
        name = max(names, key=len)
        message = f"the name {shown(name)} has {len(name)} characters"
        raise InvalidInput.at("", f"{message}, at most {LONGEST_NAME} are allowed")


def _constant(name: str) -> float:
    raise Unparseable(f"{name} is not a JSON number")


def _decoder(pairs: Callable[[list[tuple[str, object]]], Mapping[str, object]]) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=pairs, parse_constant=_constant)


DECODER = _decoder(_object)
"""Made once: making it takes longer than reading a short line."""
