"""One estimate for each group of a table's rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.errors import Fault, InvalidInput
from app.core.prevalence.tests.multiple import holm
from app.engines.engine import MOST_GROUPS, too_many
from app.estimation import Estimate
from app.formats.frame import Frame
from app.schemas.requests import EstimateIn, SegmentKey, SegmentValue
from app.schemas.validation import checked


@dataclass(frozen=True)
class Group:
    """A group by name: which rows of the table, and these rows."""

    name: str
    rows: Codes
    frame: Frame

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Faults within name the rows of the whole table."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput([self._placed(f) for f in error.faults], error.count) from None

    def _placed(self, fault: Fault) -> Fault:
        if fault.row is None:
            return fault
        row = int(self.rows[fault.row])
        return Fault(f"{fault.pointer.rpartition('/')[0]}/{row}", fault.message, row)


def parts(given: EstimateIn, frame: Frame | None, column: str) -> Iterator[Group]:
    """The groups, in the order in which they first occur."""
    at = "/query/group_by"
    if frame is None:
        raise InvalidInput.at(at, "names a column; send a table of named columns, CSV or Arrow say")
    if given.include:
        raise InvalidInput.at("/include", "belongs to one estimate; leave it out, or group_by")
    levels, codes = frame.text(column, at)
    if (codes < 0).any():
        missing = np.flatnonzero(codes < 0)
        row = int(missing[0])
        fault = Fault(f"/{column}/{row}", "is missing; every row needs a group", row)
        raise InvalidInput([fault], len(missing))
    used, first = np.unique(codes, return_index=True)
    if len(used) > MOST_GROUPS:
        raise InvalidInput.at(at, f"column {column[:60]} {too_many(MOST_GROUPS)}")
    spelled: dict[str, list[int]] = {}
    for code in used[np.argsort(first)].tolist():
        segment = {column: levels[code]}
        (name,) = checked(dict[SegmentKey, SegmentValue], segment, at).values()
        spelled.setdefault(name, []).append(code)
    for name, spellings in spelled.items():
        rows = np.flatnonzero(np.isin(codes, spellings))
        yield Group(name, rows, frame.part(rows))


def adjusted(results: list[Estimate]) -> list[float | None]:
    """Holm's p-values over the groups that have a test."""
    tested = [k for k, result in enumerate(results) if result.shift is not None]
    p_values: Floats = np.array([r.shift.p_value for r in results if r.shift is not None])
    found: list[float | None] = [None] * len(results)
    for k, p in zip(tested, holm(p_values).tolist(), strict=True):
        found[k] = p
    return found
