"""Monitors: made and changed, fed with rows, and what their windows say."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from numpy.typing import NDArray

from priorshift_client.batches import batch_of
from priorshift_client.bodies import NPY, array_of, batch_body, change_body, json_body
from priorshift_client.calls import (
    Answer,
    Call,
    Listing,
    change,
    get,
    into,
    nothing,
    place,
    query,
    write,
)
from priorshift_client.monitoring import (
    AlertSpec,
    Monitor,
    Observed,
    Series,
    Window,
    WindowSpec,
    WindowState,
)
from priorshift_client.operations.models import PAGE
from priorshift_client.options import UNCHANGED, Unchanged
from priorshift_client.rows import labels, moments

POINTS = 2000
"""Of a series, where nothing else is asked."""


def create_monitor(
    name: str,
    model: str,
    window: WindowSpec,
    version: int | str = "latest",
    method: str = "auto",
    *,
    segment_by: str | None = None,
    alert: AlertSpec | None = None,
    interval_level: float = 0.95,
    keep_rows: bool = False,
    description: str = "",
    idempotency_key: str | None = None,
) -> Call[Monitor]:
    """Watch a stream of rows, and have ``alert`` open alerts; without it nothing alarms.

    ``version``: a number, ``"latest"`` or ``"@alias"``, which each window looks up anew.
    """
    content = {
        "name": name,
        "model": model,
        **_selected(version),
        "method": method,
        "window": window.content(),
        "segment_by": segment_by,
        "alert": None if alert is None else alert.content(),
        "interval_level": interval_level,
        "keep_rows": keep_rows,
        "description": description,
    }
    return write(place("monitors"), json_body(content), into(Monitor), idempotency_key)


def get_monitor(name: str) -> Call[Monitor]:
    """A monitor, and the level of its windows as things stand."""
    return get(place("monitors", name), into(Monitor))


def list_monitors(model: str | None = None, *, limit: int = PAGE) -> Listing[Monitor]:
    """Monitors by name; ``limit`` is the size of a page."""
    return Listing(place("monitors"), Monitor, query(model=model, limit=limit))


def change_monitor(
    monitor: Monitor | str,
    *,
    alert: AlertSpec | Unchanged | None = UNCHANGED,
    description: str | Unchanged = UNCHANGED,
) -> Call[Monitor]:
    """Change what alarms (None: nothing), or the description; closed windows stay as they are."""
    spec = alert.content() if isinstance(alert, AlertSpec) else alert
    body = change_body({"alert": spec, "description": description})
    return change("PATCH", _place(monitor), body, into(Monitor))


def delete_monitor(monitor: Monitor | str) -> Call[None]:
    """Delete a monitor with its windows and alerts; its estimates stay in the history."""
    return change("DELETE", _place(monitor), None, nothing)


def observe(
    monitor: Monitor | str,
    batch: Any,
    *,
    observed_at: Any = None,
    segment: Mapping[str, Any] | None = None,
    columns: Iterable[str] | None = None,
    idempotency_key: str | None = None,
) -> Call[Observed]:
    """Count rows, once. What is acknowledged is in a window; estimates follow when windows close.

    ``observed_at``: one time for all rows or one for each, now without it; NumPy's are in UTC.
    ``segment``: ``{"country": "BE"}``, or with one value for each row.
    """
    segments = {key: _one_or_each(value) for key, value in (segment or {}).items()}
    options: dict[str, Any] = {"observed_at": moments(observed_at), "segment": segments or None}
    body = batch_body(batch_of(batch, columns), options)
    return write(_place(monitor, "observations"), body, into(Observed), idempotency_key)


def list_windows(
    monitor: Monitor | str,
    *,
    segment: str | None = None,
    state: WindowState | None = None,
    limit: int = PAGE,
) -> Listing[Window]:
    """Windows, the latest begun first, all or of one segment; ``limit`` is the size of a page."""
    which = query(segment=segment, state=state, limit=limit)
    return Listing(_place(monitor, "windows"), Window, which)


def get_rows(monitor: Monitor | str, window: Window | int) -> Call[NDArray[Any]]:
    """The rows of an open window, or of one that keeps them: posteriors, or counts of outputs."""
    id = window.id if isinstance(window, Window) else window
    call = get(_place(monitor, "windows", id, "rows"), _array)
    return replace(call, headers={"Accept": NPY})


def get_series(
    monitor: Monitor | str,
    *,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    class_name: str | None = None,
    segment: str | None = None,
    points: int = POINTS,
) -> Call[Series]:
    """What windows said over time, for a chart; long ranges are made shorter, to ``points``.

    ``until`` is exclusive; without ``class_name`` and ``segment`` it is all of them.
    """
    which = _range(since, until, class_name, segment, points)
    return get(_place(monitor, "series"), into(Series), which)


def get_series_csv(
    monitor: Monitor | str,
    *,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    class_name: str | None = None,
    segment: str | None = None,
    points: int = POINTS,
) -> Call[str]:
    """The same as CSV, a line for each point and class."""
    which = (*_range(since, until, class_name, segment, points), ("format", "csv"))
    return replace(get(_place(monitor, "series"), _text, which), headers={"Accept": "text/csv"})


def _place(monitor: Monitor | str, *what: str | int) -> str:
    name = monitor.name if isinstance(monitor, Monitor) else monitor
    return place("monitors", name, *what)


def _selected(version: int | str) -> dict[str, Any]:
    """The version or alias as the service takes it; nothing is the latest."""
    text = str(version)
    if text == "latest":
        return {}
    if text.startswith("@"):
        return {"alias": text[1:]}
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f'a version is a number, "latest" or "@alias", not {text[:80]!r}')
    return {"version": int(text)}


def _one_or_each(value: Any) -> Any:
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return labels(value) if several else value


def _range(
    since: datetime | str | None,
    until: datetime | str | None,
    class_name: str | None,
    segment: str | None,
    points: int,
) -> tuple[tuple[str, str], ...]:
    values = {"class": class_name, "segment": segment, "points": points}
    return query(since=since, until=until, **values)


def _array(answer: Answer) -> NDArray[Any]:
    return array_of(answer.body)


def _text(answer: Answer) -> str:
    return answer.body.decode()
