"""Filters over columns of known types, by pyarrow: as a mask of rows, or an expression.

``not`` is pushed down to the tests, so that above them only and/or are left; there null and false
are the same, and every test may answer false for a missing value, turned or not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from typing import Any

from app.core.errors import InvalidInput
from app.datasets.arrow import ArrowArray, ArrowLibrary, ArrowScalar, ArrowType, pyarrow
from app.datasets.filters import Both, Compare, Either, IsNull, Membership, Node, Not, Value, wrong

OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
KERNELS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
LISTED = 5


@dataclass(frozen=True)
class Conditions:
    """``types``: pyarrow types by column; ``of``: a column by name, an array or an expression.

    ``at``: the pointer of the filter.
    """

    types: Mapping[str, ArrowType]
    of: Callable[[str], ArrowArray]
    at: str

    def met(self, node: Node, turned: bool = False) -> ArrowArray:
        """A filter, or its opposite: a mask, or an expression."""
        import pyarrow.compute as pc

        match node:
            case Not(item):
                return self.met(item, not turned)
            case Both(items) | Either(items):
                both = isinstance(node, Both) is not turned
                join = pc.and_kleene if both else pc.or_kleene
                return reduce(join, [self.met(item, turned) for item in items])
            case IsNull(column, place):
                self._type(column, place)
                return pc.is_valid(self.of(column)) if turned else pc.is_null(self.of(column))
            case Membership(column, values, place):
                return self._among(column, values, place, turned)
            case Compare(column, operator, value, place):
                return self._compared(column, operator, value, place, turned)

    def _type(self, column: str, place: int) -> ArrowType:
        if column not in self.types:
            known = ", ".join(list(self.types)[:LISTED])
            more = ", …" if len(self.types) > LISTED else ""
            raise wrong(self.at, place, f"is no column; there are {known}{more}", column)
        kind = self.types[column]
        return kind.value_type if pyarrow().types.is_dictionary(kind) else kind

    def _among(
        self, column: str, values: tuple[Value, ...], place: int, turned: bool
    ) -> ArrowArray:
        import pyarrow.compute as pc

        kind = self._type(column, place)
        if pyarrow().types.is_null(kind):
            return self._none(column)
        scalars = [self._scalar(kind, value, column, place) for value in values]
        listed = [scalar.as_py() for scalar in scalars if scalar is not None]
        among = pc.is_in(self.of(column), value_set=pyarrow().array(listed, kind))
        if not turned:
            return among
        return pc.and_kleene(pc.invert(among), pc.is_valid(self.of(column)))

    def _compared(
        self, column: str, operator: str, value: Value, place: int, turned: bool
    ) -> ArrowArray:
        import pyarrow.compute as pc

        kind = self._type(column, place)
        types = pyarrow().types
        if types.is_null(kind):
            return self._none(column)
        if types.is_boolean(kind) and operator not in ("=", "!="):
            raise wrong(self.at, place, "is true or false; compare it by = or !=", column)
        if types.is_integer(kind) and isinstance(value, Decimal):
            operator, value = _whole(operator, value)
        scalar = self._scalar(kind, value, column, place)
        if scalar is None:
            passes = _passes(operator, value)
            return self._none(column) if passes is turned else pc.is_valid(self.of(column))
        if not turned:
            return _test(operator)(self.of(column), scalar)
        if types.is_floating(kind):
            # A NaN passes no test, so it passes the opposite of every one.
            return pc.invert(_test(operator)(self.of(column), scalar))
        return _test(OPPOSITE[operator])(self.of(column), scalar)

    def _none(self, column: str) -> ArrowArray:
        """What no value passes."""
        import pyarrow.compute as pc

        return pc.and_kleene(pc.is_valid(self.of(column)), pc.is_null(self.of(column)))

    def _scalar(self, kind: ArrowType, value: Value, column: str, place: int) -> ArrowScalar:
        """A value as the column's type; None for a number that no integer of the type is."""
        pa = pyarrow()
        words, convert = _conversion(pa.types, kind)
        try:
            given = convert(kind, value)
        except TypeError:
            message = f"is of type {str(kind)[:40]}; compare it with {words}"
            raise wrong(self.at, place, message, column) from None
        except (ValueError, OverflowError):
            raise self._misfit(column, value, words, place) from None
        if given is None:
            return None
        try:
            return pa.scalar(given, kind)
        except (pa.ArrowException, OverflowError, ValueError):
            raise self._misfit(column, value, f"a value of type {str(kind)[:40]}", place) from None

    def _misfit(self, column: str, value: Value, words: str, place: int) -> InvalidInput:
        shown = repr(value) if isinstance(value, str) else str(value)
        return wrong(self.at, place, f"cannot be compared with {shown[:60]}, not {words}", column)


def possible(node: Node, known: Conditions, turned: bool = False) -> bool:
    """Whether rows may pass, where columns of one value are ``known``, and nothing of others."""
    match node:
        case Not(item):
            return possible(item, known, not turned)
        case Both(items) | Either(items):
            join = all if isinstance(node, Both) is not turned else any
            return join(possible(item, known, turned) for item in items)
        case _:
            return node.column not in known.types or known.met(node, turned)[0].as_py() is True


def _test(operator: str) -> Callable[[ArrowArray, ArrowScalar], ArrowArray]:
    import pyarrow.compute as pc

    kernel: Callable[[ArrowArray, ArrowScalar], ArrowArray] = getattr(pc, KERNELS[operator])
    return kernel


def _passes(operator: str, value: Any) -> bool:
    """Whether integers pass a test against what is larger than all of them, or smaller."""
    return operator == "!=" or operator.startswith("<" if value > 0 else ">")


def _whole(operator: str, value: Decimal) -> tuple[str, int | Decimal]:
    """The same test of integers against an integer, where there is one."""
    if operator in ("<", ">="):
        return operator, int(value.to_integral_value(ROUND_CEILING))
    if operator in (">", "<="):
        return operator, int(value.to_integral_value(ROUND_FLOOR))
    return operator, value


def _text(kind: ArrowType, value: Value) -> ArrowScalar:
    if not isinstance(value, str):
        raise TypeError
    return value


def _truth(kind: ArrowType, value: Value) -> ArrowScalar:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _number(value: Value) -> int | Decimal:
    if isinstance(value, str | bool):
        raise TypeError
    return value


def _integer(kind: ArrowType, value: Value) -> ArrowScalar:
    number = _number(value)
    signed = str(kind).startswith("int")
    low, high = (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    if not signed:
        low, high = 0, 2**kind.bit_width - 1
    return number if isinstance(number, int) and low <= number <= high else None


def _floating(kind: ArrowType, value: Value) -> ArrowScalar:
    return float(_number(value))


def _decimal(kind: ArrowType, value: Value) -> ArrowScalar:
    return Decimal(_number(value))


def _time(kind: ArrowType, value: Value) -> ArrowScalar:
    found = datetime.fromisoformat(_text(kind, value))
    if kind.tz is None and found.tzinfo is not None:
        raise ValueError("a time zone for a column without")
    if found.microsecond % {"s": 1_000_000, "ms": 1000}.get(kind.unit, 1):
        raise ValueError("finer than the column")
    return found if kind.tz is None or found.tzinfo is not None else found.replace(tzinfo=UTC)


def _date(kind: ArrowType, value: Value) -> ArrowScalar:
    return date.fromisoformat(_text(kind, value))


def _nothing(kind: ArrowType, value: Value) -> ArrowScalar:
    raise TypeError


def _conversion(
    types: ArrowLibrary, kind: ArrowType
) -> tuple[str, Callable[[ArrowType, Value], ArrowScalar]]:
    """What values of a type are called, and how one is made; they raise what does not suit."""
    table = [
        (types.is_string(kind) or types.is_large_string(kind), "text", _text),
        (types.is_boolean(kind), "true or false", _truth),
        (types.is_integer(kind), "a number", _integer),
        (types.is_floating(kind), "a number", _floating),
        (types.is_decimal(kind), "a number", _decimal),
        (types.is_timestamp(kind), "a time like '2026-01-31T12:00:00'", _time),
        (types.is_date(kind), "a date like '2026-01-31'", _date),
        (True, "nothing but: is null", _nothing),
    ]
    return next((words, convert) for fits, words, convert in table if fits)
