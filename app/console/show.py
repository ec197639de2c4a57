"""What a person reads at the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from app.console.progress import pace
from app.console.terminal import Terminal
from app.core.json_types import JsonValue

Row = Mapping[str, JsonValue]
NAMED = ("source", "counted", "estimate", "lower", "upper")
NARROWEST = 8
"""Cells that a column of words keeps."""
UNBOUNDED = 1_000_000


def version(terminal: Terminal, answer: Row) -> None:
    """A version that was registered."""
    calibration = answer["calibration"]["method"]
    rows = "" if answer["validation"] is None else f", {answer['validation']['size']} rows"
    terminal.print(f"{answer['model']} version {answer['version']}: {calibration}{rows}")
    _warnings(terminal, answer["warnings"])


def estimate(terminal: Terminal, answer: Row) -> None:
    """An estimate."""
    terminal.print(f"{answer['model']} version {answer['version']}, {answer['size']} rows")
    terminal.print(f"{answer['method']}: {answer['reason']}")
    table = _table()
    _words(table, "class")
    _numbers(table, *NAMED)
    for row in answer["prevalence"]:
        table.add_row(row["class"], *_shares(row))
    terminal.print(table)
    shift = answer["shift"]
    if shift is not None:
        verdict = "detected" if shift["detected"] else "not detected"
        terminal.print(f"shift {verdict}, p = {shift['p_value']:.2g}")
    _warnings(terminal, answer["warnings"])


def history(terminal: Terminal, items: Sequence[Row]) -> None:
    """Estimates, newest first."""
    if not items:
        terminal.print("nothing was kept yet")
        return
    names = [row["class"] for row in items[0]["prevalence"]]
    table = _table()
    _numbers(table, "when", "version", "rows", *names, "shift")
    for item in items:
        shares = {row["class"]: _share(row["estimate"]) for row in item["prevalence"]}
        table.add_row(*_kept(item), *(shares.get(name, "") for name in names), _shifted(item))
    if _fits(terminal, table):
        terminal.print(table)
        return
    table = _table()
    _numbers(table, "when", "version", "rows")
    _words(table, "class")
    _numbers(table, "estimate", "shift")
    for item in items:
        head, tail = _kept(item), _shifted(item)
        for row in item["prevalence"]:
            table.add_row(*head, row["class"], _share(row["estimate"]), tail)
            head, tail = ["", "", ""], ""
    terminal.print(table)


def comparison(terminal: Terminal, answers: Mapping[str, Row]) -> None:
    """Methods side by side on one batch; a reason for those that do not serve it."""
    served = {method: answer for method, answer in answers.items() if "prevalence" in answer}
    for answer in list(served.values())[:1]:
        names = [row["class"] for row in answer["prevalence"]]
        table = _table()
        _numbers(table, "method", *names)
        for method, other in served.items():
            table.add_row(method, *map(_interval, other["prevalence"]))
        if not _fits(terminal, table):
            table = _table()
            _words(table, "class")
            _numbers(table, "method", "estimate")
            for k, name in enumerate(names):
                for method, other in served.items():
                    table.add_row(name, method, _interval(other["prevalence"][k]))
                    name = ""
        terminal.print(table)
    for method, answer in answers.items():
        if method not in served:
            reason = answer["reason"].removeprefix(f"{method} is not available: ")
            terminal.print(f"{method}: {reason}")


def queued(terminal: Terminal, answer: Row) -> None:
    """A job that goes on elsewhere."""
    terminal.say(f"job {answer['id']}: {answer['state']}")


def jobs(terminal: Terminal, items: Sequence[Row]) -> None:
    """Jobs, newest first."""
    if not items:
        terminal.print("there is no job yet")
        return
    table = _table()
    _numbers(table, "id")
    _words(table, "when", "kind", "model", "data set", "state")
    for item in items:
        progress = item["progress"]
        going = item["state"] == "running" and progress is not None
        state = f"round {progress['round']}, {pace(progress)}" if going else item["state"]
        when, path = item["created_at"][:19], item["asked"]["dataset"]["path"]
        table.add_row(item["id"], when, item["kind"], item["model"], path, state)
    terminal.print(table)


def job(terminal: Terminal, answer: Row, estimates: Sequence[Row]) -> None:
    """A job, and the ``estimates`` of its groups."""
    head = f"job {answer['id']}: {answer['kind']} of {answer['asked']['dataset']['path']}, "
    terminal.say(head + answer["state"])
    if answer["finished_at"] is None and answer["progress"] is not None:
        terminal.print(f"round {answer['progress']['round']}, {pace(answer['progress'])}")
    for fault in faults(answer):
        terminal.print(fault, style="red")
    if answer["state"] == "done":
        _done(terminal, answer, estimates)
    _warnings(terminal, answer["warnings"])


def faults(answer: Row) -> list[str]:
    """Why a job failed."""
    return [f"{fault['pointer']} {fault['message']}".strip() for fault in answer["errors"]]


def _done(terminal: Terminal, answer: Row, estimates: Sequence[Row]) -> None:
    if answer["kind"] == "adjust":
        terminal.print(f"{answer['rows']} rows in {answer['files']} files in {answer['output']}")
    elif answer["kind"] == "register":
        terminal.print(f"{answer['model']} version {answer['version']}: {answer['rows']} rows")
    elif [item["group"] for item in answer["estimates"]] == [{}]:
        estimate(terminal, estimates[0])
    elif estimates:
        _groups(terminal, answer["estimates"], estimates)


def _groups(terminal: Terminal, items: Sequence[Row], estimates: Sequence[Row]) -> None:
    """One table; the shift as its p-value over all groups."""
    first = estimates[0]
    terminal.print(f"{first['model']} version {first['version']}")
    table = _table()
    _words(table, *items[0]["group"])
    _numbers(table, "rows")
    _words(table, "class")
    _numbers(table, *NAMED, "shift")
    for item, estimate in zip(items, estimates, strict=True):
        head = [*item["group"].values(), str(item["size"])]
        p = item["holm_p_value"]
        tail = "" if p is None else f"p = {p:.2g}"
        for row in estimate["prevalence"]:
            table.add_row(*head, row["class"], *_shares(row), tail)
            head, tail = [""] * len(head), ""
    terminal.print(table)
    methods = {str(estimate["method"]): None for estimate in estimates}
    terminal.print(f"by {', '.join(methods)}; p adjusted for {len(items)} groups (Holm)")
    distinct = {
        (warning["code"], warning["message"]): warning
        for estimate in estimates
        for warning in estimate["warnings"]
    }
    _warnings(terminal, list(distinct.values()))


def _table() -> Table:
    return Table(box=None, pad_edge=False)


def _words(table: Table, *names: str) -> None:
    """Columns that give way where the terminal is narrow, and go on in the next line."""
    for name in names:
        table.add_column(name, overflow="fold", min_width=NARROWEST)


def _numbers(table: Table, *names: str) -> None:
    """Columns that are of no use in pieces."""
    for name in names:
        justify: Any = "right" if table.columns else "left"
        table.add_column(name, justify=justify, no_wrap=True)


def _fits(terminal: Terminal, table: Table) -> bool:
    """Whether a table could be printed as it is, no column narrower."""
    unbounded = terminal.options.update(width=UNBOUNDED)
    return terminal.measure(table, options=unbounded).maximum <= terminal.width


def _kept(item: Row) -> list[str]:
    """When an estimate was, of which version, of how many rows."""
    when = (item["observed_at"] or item["created_at"])[:19]
    return [when, str(item["version"]), str(item["size"])]


def _shifted(item: Row) -> str:
    return "yes" if item["shift"] is not None and item["shift"]["detected"] else ""


def _shares(row: Row) -> list[str]:
    return [_share(row[name]) for name in NAMED]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _interval(row: Row) -> str:
    if row["lower"] is None:
        return _share(row["estimate"])
    return f"{row['estimate']:.4f} ({row['lower']:.4f}, {row['upper']:.4f})"


def _warnings(terminal: Terminal, warnings: Sequence[Row]) -> None:
    for warning in warnings:
        terminal.print(f"{warning['code']}: {warning['message']}", style="yellow")
