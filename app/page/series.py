"""What a chart over time is drawn from: shares of classes, sizes and tests, in columns."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import numpy as np

from app.clock import rfc3339
from app.core.arrays import Floats
from app.stored.estimates import StoredEstimate
from models_store.series import Columns

ROWS = 200
"""Points of a table; a chart shows them all."""


@dataclass(frozen=True)
class ClassLine:
    """A class over time. ``source``: of each point, as versions may follow each other."""

    name: str
    estimate: list[float | None]
    lower: list[float | None]
    upper: list[float | None]
    source: list[float | None]


@dataclass(frozen=True)
class ChartSeries:
    """Columns of equal length, oldest first; None where a point says nothing.

    ``level``: what a p-value is detected below; ``id``: the estimate behind a point; ``alarms``:
    when alerts were opened.
    """

    time: list[str]
    size: list[int]
    p_value: list[float | None]
    level: list[float | None]
    detected: list[bool | None]
    lines: list[ClassLine]
    id: list[str | None] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.time)

    def rows(self) -> list[dict[str, object]]:
        """The newest points for a table, newest first."""
        newest = range(len(self) - 1, max(len(self) - ROWS, 0) - 1, -1)
        return [self._row(i) for i in newest]

    def _row(self, i: int) -> dict[str, object]:
        parts = ("estimate", "lower", "upper", "source")
        return {
            "time": self.time[i],
            "size": self.size[i],
            "p_value": self.p_value[i],
            "detected": self.detected[i],
            "id": self.id[i] if self.id else None,
            "shares": [{part: getattr(line, part)[i] for part in parts} for line in self.lines],
        }

    def content(self) -> dict[str, object]:
        """For the chart."""
        return asdict(self)


def of_estimates(estimates: Sequence[StoredEstimate], shown: Sequence[str]) -> ChartSeries:
    """Of kept estimates of one model, oldest first."""
    shifts = [estimate.shift for estimate in estimates]
    return ChartSeries(
        time=[rfc3339(estimate.moment) for estimate in estimates],
        size=[estimate.size for estimate in estimates],
        p_value=[None if shift is None else shift.p_value for shift in shifts],
        level=[None if shift is None else shift.significance for shift in shifts],
        detected=[None if shift is None else shift.detected for shift in shifts],
        lines=[_line(estimates, name) for name in shown],
        id=[estimate.id for estimate in estimates],
    )


def of_windows(
    columns: Columns,
    classes: Sequence[str],
    shown: Sequence[str],
    alarms: Sequence[str] = (),
    ids: Mapping[int, str] | None = None,
) -> ChartSeries:
    """Of the windows of a stream; ``ids``: of their estimates, by start."""
    detected = _numbers(columns.detected)
    return ChartSeries(
        time=[datetime.fromtimestamp(t / 1e6, UTC).isoformat() for t in columns.start.tolist()],
        size=columns.size.tolist(),
        p_value=_numbers(columns.p_value),
        level=_numbers(columns.level),
        detected=[None if value is None else bool(value) for value in detected],
        lines=[_part(columns.shares[:, classes.index(name)], name) for name in shown],
        id=[(ids or {}).get(start) for start in columns.start.tolist()],
        alarms=list(alarms),
    )


def segments_of(estimates: Sequence[StoredEstimate]) -> list[str]:
    """The segments that occur, as ``key=value``."""
    return sorted({f"{key}={value}" for e in estimates for key, value in e.segment.items()})


def _line(estimates: Sequence[StoredEstimate], name: str) -> ClassLine:
    rows = [estimate.share(name) for estimate in estimates]
    return ClassLine(
        name=name,
        estimate=[row.estimate for row in rows],
        lower=[row.lower for row in rows],
        upper=[row.upper for row in rows],
        source=[row.source for row in rows],
    )


def _part(shares: Floats, name: str) -> ClassLine:
    return ClassLine(name, *(_numbers(shares[:, j]) for j in range(4)))


def _numbers(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]
