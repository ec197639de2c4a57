"""What a person reads at the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from app.console.progress import pace


def version(console: Console, shown: Mapping[str, Any]) -> None:
    """A version that was registered."""
    calibration = shown["calibration"]["method"]
    rows = "" if shown["validation"] is None else f", {shown['validation']['size']} rows"
    console.print(f"{shown['model']} version {shown['version']}: {calibration}{rows}")
    _warnings(console, shown["warnings"])


def estimate(console: Console, shown: Mapping[str, Any]) -> None:
    """An estimate."""
    console.print(f"{shown['model']} version {shown['version']}, {shown['size']} rows")
    console.print(f"{shown['method']}: {shown['reason']}", highlight=False)
    table = _table("class", "source", "counted", "estimate", "lower", "upper")
    for row in shown["prevalence"]:
        names = ("source", "counted", "estimate", "lower", "upper")
        table.add_row(row["class"], *(_share(row[name]) for name in names))
    console.print(table)
    shift = shown["shift"]
    if shift is not None:
        found = "detected" if shift["detected"] else "not detected"
        console.print(f"shift {found}, p = {shift['p_value']:.2g}")
    _warnings(console, shown["warnings"])


def history(console: Console, items: Sequence[Mapping[str, Any]]) -> None:
    """Estimates, newest first."""
    if not items:
        console.print("nothing was kept yet")
        return
    names = [row["class"] for row in items[0]["prevalence"]]
    table = _table("when", "version", "rows", *names, "shift")
    for item in items:
        when = (item["observed_at"] or item["created_at"])[:19]
        shares = {row["class"]: _share(row["estimate"]) for row in item["prevalence"]}
        detected = item["shift"] is not None and item["shift"]["detected"]
        cells = [when, str(item["version"]), str(item["size"])]
        cells += [shares.get(name, "") for name in names]
        table.add_row(*cells, "yes" if detected else "")
    console.print(table)


def comparison(console: Console, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Methods side by side on one batch; a reason for those that do not serve it."""
    served = [answer for answer in found.values() if "prevalence" in answer]
    names = [row["class"] for row in served[0]["prevalence"]] if served else []
    table = _table("method", *names)
    for method, answer in found.items():
        if "prevalence" in answer:
            table.add_row(method, *(_interval(row) for row in answer["prevalence"]))
    console.print(table)
    for method, answer in found.items():
        if "prevalence" not in answer:
            reason = answer["reason"].removeprefix(f"{method} is not available: ")
            console.print(f"{method}: {reason}", highlight=False)


def queued(console: Console, shown: Mapping[str, Any]) -> None:
    """A job that goes on elsewhere."""
    console.print(f"job {shown['id']}: {shown['state']}", highlight=False, soft_wrap=True)


def jobs(console: Console, items: Sequence[Mapping[str, Any]]) -> None:
    """Jobs, newest first."""
    if not items:
        console.print("there is no job yet")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("id", "when", "kind", "model", "data set", "state"):
        table.add_column(name, overflow="fold", no_wrap=name == "id")
    for item in items:
        progress = item["progress"]
        going = item["state"] == "running" and progress is not None
        state = f"round {progress['round']}, {pace(progress)}" if going else item["state"]
        when, path = item["created_at"][:19], item["asked"]["dataset"]["path"]
        table.add_row(item["id"], when, item["kind"], item["model"], path, state)
    console.print(table)


def job(console: Console, shown: Mapping[str, Any], estimates: Sequence[Mapping[str, Any]]) -> None:
    """A job, and the ``estimates`` of its groups."""
    head = f"job {shown['id']}: {shown['kind']} of {shown['asked']['dataset']['path']}, "
    console.print(head + shown["state"], highlight=False, soft_wrap=True)
    if shown["finished_at"] is None and shown["progress"] is not None:
        console.print(f"round {shown['progress']['round']}, {pace(shown['progress'])}")
    for fault in faults(shown):
        console.print(fault, highlight=False, style="red")
    if shown["state"] == "done":
        _done(console, shown, estimates)
    _warnings(console, shown["warnings"])


def faults(shown: Mapping[str, Any]) -> list[str]:
    """Why a job failed."""
    return [f"{fault['pointer']} {fault['message']}".strip() for fault in shown["errors"]]


def _done(
    console: Console, shown: Mapping[str, Any], estimates: Sequence[Mapping[str, Any]]
) -> None:
    if shown["kind"] == "adjust":
        console.print(f"{shown['rows']} rows in {shown['files']} files in {shown['output']}")
    elif shown["kind"] == "register":
        console.print(f"{shown['model']} version {shown['version']}: {shown['rows']} rows")
    elif [item["group"] for item in shown["estimates"]] == [{}]:
        estimate(console, estimates[0])
    elif estimates:
        _groups(console, shown["estimates"], estimates)


def _groups(
    console: Console, items: Sequence[Mapping[str, Any]], estimates: Sequence[Mapping[str, Any]]
) -> None:
    """One table; the shift as its p-value over all groups."""
    first = estimates[0]
    console.print(f"{first['model']} version {first['version']}")
    names = ("source", "counted", "estimate", "lower", "upper")
    table = _table(*items[0]["group"], "rows", "class", *names, "shift")
    for item, found in zip(items, estimates, strict=True):
        head = [*item["group"].values(), str(item["size"])]
        p = item["holm_p_value"]
        tail = "" if p is None else f"p = {p:.2g}"
        for row in found["prevalence"]:
            table.add_row(*head, row["class"], *(_share(row[name]) for name in names), tail)
            head, tail = [""] * len(head), ""
    console.print(table)
    told = {str(found["method"]): None for found in estimates}
    console.print(f"by {', '.join(told)}; p adjusted for {len(items)} groups (Holm)")
    distinct = {
        (warning["code"], warning["message"]): warning
        for found in estimates
        for warning in found["warnings"]
    }
    _warnings(console, list(distinct.values()))


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for position, name in enumerate(names):
        table.add_column(name, justify="left" if position == 0 else "right")
    return table


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _interval(row: Mapping[str, Any]) -> str:
    if row["lower"] is None:
        return _share(row["estimate"])
    return f"{row['estimate']:.4f} ({row['lower']:.4f}, {row['upper']:.4f})"


def _warnings(console: Console, warnings: Sequence[Mapping[str, Any]]) -> None:
    for warning in warnings:
        console.print(f"{warning['code']}: {warning['message']}", highlight=False, style="yellow")
