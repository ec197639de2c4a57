"""What is to be shown over time: classes, a segment, a range. The address holds it all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Request

from app.clock import now
from app.core.errors import InvalidInput
from app.http.body import refuse_unknown

RANGES: Mapping[str, tuple[str, timedelta | None]] = {
    "all": ("everything", None),
    "30d": ("30 days", timedelta(days=30)),
    "7d": ("7 days", timedelta(days=7)),
    "24h": ("24 hours", timedelta(hours=24)),
}
MOST_CLASSES = 4
"""Lines that one chart can bear."""
NAMES = ("segment", "range", "from", "to", "cursor")


@dataclass(frozen=True)
class Choice:
    """Days are inclusive and in UTC; they count before the range."""

    classes: tuple[str, ...] = ()
    segment: str = ""
    range: str = "all"
    first: date | None = None
    last: date | None = None

    def span(self) -> tuple[datetime | None, datetime | None]:
        """Since when, and until before when."""
        if self.first is None and self.last is None:
            back = RANGES[self.range][1]
            return (None if back is None else now() - back), None
        since = None if self.first is None else datetime.combine(self.first, time(), UTC)
        until = None
        if self.last is not None:
            until = datetime.combine(self.last, time(), UTC) + timedelta(days=1)
        return since, until

    def among(self, classes: Sequence[str], otherwise: Sequence[str]) -> list[str]:
        """The chosen ones of these classes, in their order; ``otherwise`` where none is chosen."""
        unknown = [name for name in self.classes if name not in classes]
        if unknown:
            raise InvalidInput.at("/query/class", f"{unknown[0][:60]!r} is not a class here")
        chosen = [name for name in classes if name in self.classes]
        return chosen[:MOST_CLASSES] if chosen else list(otherwise)

    def query(self) -> str:
        """The same as the query of an address."""
        pairs = [("class", name) for name in self.classes]
        pairs += [("segment", self.segment), ("range", self.range)]
        pairs += [("from", f"{self.first or ''}"), ("to", f"{self.last or ''}")]
        return urlencode([(name, value) for name, value in pairs if value])


async def _choice(request: Request) -> Choice:
    pairs = request.query_params.multi_items()
    refuse_unknown([pair for pair in pairs if pair[0] != "class"], NAMES)
    given = dict(pairs)
    range = given.get("range") or "all"
    if range not in RANGES:
        raise InvalidInput.at("/query/range", f"must be one of {', '.join(RANGES)}")
    classes = tuple(dict.fromkeys(value for name, value in pairs if name == "class" and value))
    segment = given.get("segment", "")[:400]
    return Choice(classes, segment, range, _day(given, "from"), _day(given, "to"))


def _day(given: Mapping[str, str], name: str) -> date | None:
    text = given.get(name, "")
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or not 1970 <= day.year <= 9000:
        raise InvalidInput.at(f"/query/{name}", "must be a day, like 2026-01-31")
    return day


ChoiceDep = Annotated[Choice, Depends(_choice)]
