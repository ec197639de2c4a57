"""What a person reads at the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


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
