"""From batches of columns to arrays: n × C posteriors, codes of labels and of groups.

Rows are judged as those of a request are. What is wrong with some is collected by row, so that the
caller may refuse them or leave them out; nothing here looks at rows one by one, except at the few
that are told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from app.core.arrays import (
    NARROW,
    AnyFloats,
    Codes,
    Floats,
    Mask,
    probability_rows,
    refused_rows,
    row_fault,
)
from app.core.errors import Faults, InvalidInput
from app.core.names import Spellings, named
from app.core.spelling import NUMBER, find
from app.datasets import filters
from app.datasets.arrow import ArrowArray, ArrowTable, ArrowType, pyarrow
from app.engines.engine import MOST_GROUPS, too_many

LONGEST_GROUP = 256
DENSE = 1 << 20
"""Up to so many combinations of codes are counted in a table rather than sorted."""
NOT_UTF8 = -2


class Wrong:
    """Rows of ``size`` with something wrong: which, and words for the first of each kind."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._rows: Mask | None = None
        self._messages: dict[int, str] = {}

    def add(
        self, rows: Codes, message: Callable[[int], str], kinds: AnyFloats | Codes | None = None
    ) -> None:
        """Some more, in order; a row has the words of what was wrong with it first.

        ``kinds``: of each, a number; the first of a kind is told, and how many more there are.
        Without it all are of one.
        """
        if not len(rows):
            return
        if self._rows is None:
            self._rows = np.zeros(self.size, np.bool_)
        fresh = ~self._rows[rows]
        rows = rows[fresh]
        self._rows[rows] = True
        kinds = np.zeros(len(rows)) if kinds is None else kinds[fresh]
        _, first, counts = np.unique(kinds, return_index=True, return_counts=True)
        for k in np.argsort(first)[: Faults.SHOWN].tolist():
            row, others = int(rows[first[k]]), int(counts[k]) - 1
            more = f"; and {others:,} more like it, at least" if others else ""
            self._messages[row] = message(row) + more

    @property
    def count(self) -> int:
        """How many rows."""
        return 0 if self._rows is None else int(np.count_nonzero(self._rows))

    def right(self) -> Codes | None:
        """The other rows; None if that is all."""
        return None if self._rows is None else np.flatnonzero(~self._rows)

    def first(self) -> list[tuple[int, str]]:
        """The first rows in order, with words; a later row may lack them and is not told."""
        return sorted(self._messages.items())[: Faults.SHOWN]


def single(kinds: Sequence[ArrowType]) -> bool:
    """Whether posteriors of these types are float32, rather than float64."""
    types = pyarrow().types
    return all(types.is_float32(kind) or types.is_float16(kind) for kind in kinds)


def numeric(kind: ArrowType) -> bool:
    """Whether a column may hold posteriors."""
    types = pyarrow().types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind))


def textual(kind: ArrowType) -> bool:
    """Whether a column holds text, as it is or as a dictionary."""
    types = pyarrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def groupable(kind: ArrowType) -> bool:
    """Whether rows can be grouped by a column: text, whole numbers, days, times, truth."""
    types = pyarrow().types
    plain = types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    return bool(textual(kind) or plain or types.is_date(kind) or types.is_timestamp(kind))


def spells(kind: ArrowType, classes: Sequence[str]) -> bool:
    """Whether a column may hold labels: text, or numbers or truth values that spell a class."""
    types = pyarrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_boolean(kind):
        return bool({"true", "false"} & set(classes))
    return textual(kind) or (numeric(kind) and any(map(NUMBER.fullmatch, classes)))


def posteriors(batch: ArrowTable, names: Sequence[str], wrong: Wrong) -> AnyFloats:
    """Columns side by side, n × C, few of them in columns of memory; missing numbers are told."""
    columns = [batch.column(name) for name in names]
    kind = np.float32 if single([column.type for column in columns]) else np.float64
    matrix = np.empty((batch.num_rows, len(names)), kind, "F" if len(names) <= NARROW else "C")
    for k, (name, column) in enumerate(zip(names, columns, strict=True)):
        if column.null_count:
            empty = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
            words = f"column {name[:60]} is missing; every row needs a number"
            wrong.add(empty, lambda _, words=words: words)  # type: ignore[misc]
        if pyarrow().types.is_decimal(column.type):
            column = column.cast(pyarrow().float64())
        matrix[:, k] = column.to_numpy(zero_copy_only=False)
    return matrix


@dataclass(frozen=True)
class Kept:
    """Rows that are right, which they were (None: all), and how many were rescaled."""

    values: AnyFloats
    rows: Codes | None
    renormalised: int


def checked(matrix: AnyFloats, wrong: Wrong) -> Kept:
    """Rows that are probabilities and right otherwise; those that are none are told."""
    values = cast(Floats, matrix)
    if wrong.right() is None:
        try:
            rows = probability_rows(values, "", owned=True)
            return Kept(rows.values, None, rows.renormalised)
        except InvalidInput:
            pass
    refused = refused_rows(values)
    kinds = _kinds(values[refused])
    wrong.add(refused, lambda row: row_fault(values[row], row, "").message, kinds)
    kept = wrong.right()
    assert kept is not None
    if not len(kept):
        return Kept(matrix[:0], kept, 0)
    rows = probability_rows(values[kept], "", owned=True)
    return Kept(rows.values, kept, rows.renormalised)


def _kinds(rows: Floats) -> Floats:
    """One number for all rows of which ``row_fault`` says the same."""
    with np.errstate(invalid="ignore", over="ignore"):
        found: Floats = np.round(rows.sum(axis=1, dtype=np.float64), 6)
    found[(rows < 0).any(axis=1)] = -1.0
    found[~np.isfinite(rows).all(axis=1)] = -2.0
    return found


def labels(column: ArrowArray, classes: Sequence[str], wrong: Wrong) -> Codes:
    """A column of labels as positions of the classes that they spell; others are told."""
    if pyarrow().types.is_decimal(column.type):
        column = column.cast(pyarrow().float64())
    coded = _coded(column)
    index = Spellings(classes).index()
    places = [find(level, index) for level in coded.levels]
    place = np.array([-1 if k is None else k for k in places] + [-1, -1], np.intp)
    found: Codes = place[coded.codes]

    def message(row: int) -> str:
        code = coded.codes[row]
        if code == NOT_UTF8:
            return "the label is not UTF-8"
        shown = "null" if code < 0 else repr(coded.levels[code][:60])
        return f"{shown} is not a label of the model"

    unknown = np.flatnonzero(found < 0)
    wrong.add(unknown, message, coded.codes[unknown])
    return found


@dataclass(frozen=True)
class CodedColumn:
    """A column as codes into ``levels``; -1 for missing, ``NOT_UTF8`` for what is no text."""

    levels: tuple[str, ...]
    codes: Codes


def group_column(column: ArrowArray, name: str, wrong: Wrong, at: str) -> CodedColumn:
    """A column to group by; missing values are told, too many or long ones an ``InvalidInput``.

    Rows without a value are no group: a share of what is not known to be anything is of no use, and
    a name for them could be another group's.
    """
    coded = _coded(column)
    if len(coded.levels) > MOST_GROUPS:
        raise InvalidInput.at(at, f"column {name[:60]} {too_many(MOST_GROUPS)}")
    if any(len(level) > LONGEST_GROUP for level in coded.levels):
        message = f"column {name[:60]} holds groups of more than {LONGEST_GROUP} characters"
        raise InvalidInput.at(at, message)
    levels: dict[str, int] = {}
    faults: dict[int, str] = {}
    places = [-1] * len(coded.levels)
    for code, level in enumerate(coded.levels):
        try:
            places[code] = levels.setdefault(named(level), len(levels))
        except ValueError as error:
            faults[code] = f"column {name[:60]} {error}"
    unseen = np.flatnonzero(np.isin(coded.codes, list(faults)))
    wrong.add(unseen, lambda row: faults[int(coded.codes[row])], coded.codes[unseen])

    def message_(row: int) -> str:
        empty = coded.codes[row] == -1
        if not empty:
            return f"column {name[:60]} holds text that is not UTF-8"
        advice = f"leave such rows out by the filter: {filters.quoted(name)} is not null"
        return f"column {name[:60]} is missing; every row needs a group; {advice}"

    none = np.flatnonzero(coded.codes < 0)
    wrong.add(none, message_, coded.codes[none])
    return CodedColumn(tuple(levels), np.array([*places, NOT_UTF8, -1], np.intp)[coded.codes])


def crossed(columns: Sequence[CodedColumn], at: str) -> tuple[Codes, tuple[tuple[str, ...], ...]]:
    """Codes of the groups that several columns make together, and the names of each."""
    codes = columns[0].codes
    sizes = [len(column.levels) for column in columns]
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        codes = codes * size + column.codes
    used, codes = _dense(codes, int(np.prod(sizes, dtype=np.float64)))
    if len(used) > MOST_GROUPS:
        raise InvalidInput.at(at, too_many(MOST_GROUPS))
    places = np.unravel_index(used, sizes)
    named = [
        [column.levels[k] for k in place.tolist()]
        for column, place in zip(columns, places, strict=True)
    ]
    return codes, tuple(zip(*named, strict=True))


def _dense(codes: Codes, size: int) -> tuple[Codes, Codes]:
    """Which codes there are, and each as its position among them."""
    if size > DENSE:
        used, dense = np.unique(codes, return_inverse=True)
        return used, dense
    used = np.flatnonzero(np.bincount(codes, minlength=size))
    place = np.zeros(max(size, 1), np.intp)
    place[used] = np.arange(len(used))
    return used, place[codes]


def _coded(column: ArrowArray) -> CodedColumn:
    pa = pyarrow()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    missing = len(column.dictionary)
    codes = column.indices.cast(pa.int64()).fill_null(missing).to_numpy(zero_copy_only=False)
    used, dense = _dense(codes.astype(np.intp, copy=False), missing + 1)
    present = used[used < missing]
    levels: dict[str, int] = {}
    place = np.full(len(used), -1, np.intp)
    for k, level in enumerate(_levels(column.dictionary.take(pa.array(present)))):
        if level is not None:
            place[k] = NOT_UTF8 if level is _BAD else levels.setdefault(level, len(levels))
    return CodedColumn(tuple(levels), place[dense])


_BAD = "\ud800"


def _levels(values: ArrowArray) -> list[str | None]:
    """Values in words; ``_BAD`` for text that is none."""
    pa = pyarrow()
    if not textual(values.type):
        return [_shown(value) for value in values.to_pylist()]
    try:
        found: list[str | None] = values.to_pylist()
        return found
    except UnicodeDecodeError:
        return [_text(value) for value in values.cast(pa.binary()).to_pylist()]


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return _BAD


def _shown(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
