"""How every monitor stands now, for an operator: a few bounded questions for all of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.monitors import shown as called
from models_store.series import Columns, unpacked
from models_store.tables import alerts, estimates, models, monitors, streams, tasks, windows

UNDER_WAY = ("open", "acknowledged")


@dataclass(frozen=True, eq=False)
class StreamStanding:
    """A segment of a monitor, by what whoever asked calls it.

    ``last``: its last closed window, None while there is none.
    ``statistic``: of that window's likelihood-ratio test. ``since``: microseconds since 1970 from
    which, or from some time later, a window has waited to be closed; None where none waits.
    """

    monitor: str
    segment: str
    classes: tuple[str, ...]
    last: Columns | None
    statistic: float | None
    since: int | None


@dataclass(frozen=True)
class Standing:
    """Streams by monitor, and what there are besides.

    ``under_way``: alerts by monitor and state, of every monitor. ``others``: monitors and streams
    of which nothing else is told.
    """

    streams: tuple[StreamStanding, ...]
    under_way: Mapping[tuple[str, str], int]
    others: Mapping[str, int]


class Standings:
    """What the last windows said, and what waits."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(
        self, closes: str, now: int, most: int, only: Collection[str] | None = None
    ) -> Standing:
        """At most ``most`` streams: the oldest of each monitor by name, then the second, ….

        ``closes``: the kind of the tasks that close windows; ``only``: monitors of these models.
        """
        shown = _shown(most, only)
        rows = self._connection.execute(_described(shown, closes, now)).all()
        monitored = len({row.monitor for row in rows})
        streamed = rows[0].streams if rows else 0
        others = {
            "monitors": self._count(only) - monitored,
            "streams": streamed - len(rows),
        }
        found = tuple(_standing(row) for row in rows)
        return Standing(found, self._under_way(only), others)

    def _count(self, only: Collection[str] | None) -> int:
        """Monitors that have a stream."""
        has = sa.exists().where(streams.c.monitor_id == monitors.c.id)
        statement = sa.select(sa.func.count()).select_from(monitors.join(models)).where(has)
        return int(self._connection.execute(_seen(statement, only)).scalar_one())

    def _under_way(self, only: Collection[str] | None) -> dict[tuple[str, str], int]:
        name = called(only).label("monitor")
        statement = (
            sa.select(name, alerts.c.state, sa.func.count())
            .select_from(alerts.join(streams, streams.c.id == alerts.c.stream_id))
            .join(monitors, monitors.c.id == streams.c.monitor_id)
            .join(models, models.c.id == monitors.c.model_id)
            .where(alerts.c.state.in_(UNDER_WAY))
            .group_by(name, alerts.c.state)
        )
        rows = self._connection.execute(_seen(statement, only)).all()
        return {(name, state): int(count) for name, state, count in rows}


def _seen(statement: sa.Select[Any], only: Collection[str] | None) -> sa.Select[Any]:
    return statement if only is None else statement.where(models.c.name.in_(sorted(only)))


def _shown(most: int, only: Collection[str] | None) -> sa.Subquery:
    """The streams to tell of: every monitor's first before anyone's second."""
    has = sa.exists().where(streams.c.monitor_id == monitors.c.id)
    name = called(only).label("name")
    named = (
        _seen(
            sa.select(monitors.c.id, name, models.c.classes).join_from(monitors, models),
            only,
        )
        .where(has)
        .order_by(name)
        .limit(most)
        .subquery()
    )
    place = sa.func.row_number().over(partition_by=named.c.id, order_by=streams.c.id)
    ranked = sa.select(
        streams.c.id,
        streams.c.segment,
        named.c.name.label("monitor"),
        named.c.classes,
        place.label("place"),
        sa.func.count().over().label("streams"),
    ).join_from(streams, named, named.c.id == streams.c.monitor_id)
    inner = ranked.subquery()
    return sa.select(inner).order_by(inner.c.place, inner.c.monitor).limit(most).subquery()


def _described(shown: sa.Subquery, closes: str, now: int) -> sa.Select[Any]:
    """Each with its last window and its test, and since when others wait."""
    c, mine = windows.c, windows.c.stream_id == shown.c.id
    latest = sa.select(sa.func.max(c.number)).where(mine, c.state == "closed").scalar_subquery()
    last = windows.alias()
    sealed = (
        sa.select(sa.func.coalesce(sa.case((c.due <= now, c.due)), c.end))
        .where(mine, c.state == "sealed")
        .order_by(c.number)
        .limit(1)
        .scalar_subquery()
    )
    due = sa.select(sa.func.min(c.due)).where(mine, c.state == "open", c.due <= now)
    asked = sa.and_(tasks.c.kind == closes, tasks.c.key == sa.cast(shown.c.id, sa.String(200)))
    return (
        sa.select(
            shown.c.monitor,
            shown.c.segment,
            shown.c.classes,
            shown.c.streams,
            last.c.said,
            estimates.c.content["shift"]["statistic"].as_float().label("statistic"),
            sealed.label("sealed"),
            due.scalar_subquery().label("due"),
            tasks.c.created_at.label("asked"),
        )
        .select_from(shown)
        .outerjoin(last, sa.and_(last.c.stream_id == shown.c.id, last.c.number == latest))
        .outerjoin(estimates, estimates.c.id == last.c.estimate_id)
        .outerjoin(tasks, asked)
        .order_by(shown.c.monitor, shown.c.place)
    )


def _standing(row: sa.Row[Any]) -> StreamStanding:
    classes = tuple(row.classes)
    last = None if row.said is None else unpacked(row.segment, row.said, len(classes))
    return StreamStanding(row.monitor, row.segment, classes, last, row.statistic, _since(row))


def _since(row: sa.Row[Any]) -> int | None:
    """A window of the past that came just now has waited no longer than the task for it."""
    waiting: list[int] = [time for time in (row.sealed, row.due) if time is not None]
    if not waiting:
        return None
    asked = [] if row.asked is None else [int(row.asked.timestamp() * 1_000_000)]
    return max([min(waiting), *asked])
