"""What a chart over time is drawn from: one class, its interval and its test, in columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Series:
    """Columns of equal length, oldest first, of one class.

    ``id``: the estimate behind a point. ``source``: of each point, as versions may follow each
    other.
    """

    class_name: str
    time: list[str] = field(default_factory=list)
    estimate: list[float] = field(default_factory=list)
    lower: list[float | None] = field(default_factory=list)
    upper: list[float | None] = field(default_factory=list)
    source: list[float] = field(default_factory=list)
    p_value: list[float | None] = field(default_factory=list)
    significance: list[float | None] = field(default_factory=list)
    detected: list[bool] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    id: list[str | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.time)

    def rows(self) -> list[Mapping[str, Any]]:
        """The points, newest first, for a table."""
        columns = {k: v for k, v in vars(self).items() if k != "class_name"}
        return [
            {name: column[i] for name, column in columns.items()}
            for i in reversed(range(len(self)))
        ]

    def content(self) -> dict[str, Any]:
        """For the chart."""
        return asdict(self)


def of_estimates(contents: Iterable[Mapping[str, Any]], name: str) -> Series:
    """Of kept estimates, oldest first; those whose model lacks the class are left out."""
    series = Series(name)
    for content in contents:
        row = next((r for r in content["prevalence"] if r["class"] == name), None)
        if row is None:
            continue
        shift = content["shift"] or {}
        series.time.append(content["observed_at"] or content["created_at"])
        series.estimate.append(row["estimate"])
        series.lower.append(row["lower"])
        series.upper.append(row["upper"])
        series.source.append(row["source"])
        series.p_value.append(shift.get("p_value"))
        series.significance.append(shift.get("significance"))
        series.detected.append(bool(shift.get("detected")))
        series.size.append(content["size"])
        series.id.append(content["id"])
    return series


def segments_of(contents: Sequence[Mapping[str, Any]]) -> list[str]:
    """The segments that occur, as ``key=value``."""
    return sorted({f"{key}={value}" for c in contents for key, value in c["segment"].items()})
