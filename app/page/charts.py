"""What charts are drawn from: the numbers of the tables, no more classes than a chart can bear."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.page.words import moved

MOST_BARS = 30
MOST_LINES = 8
DWARFS = 0.8
"""A class with more than this share, always, is left out: the others could not be seen."""
Row = Mapping[str, Any]
COLUMNS = ("class", "source", "counted", "estimate", "lower", "upper")


def rest(prevalence: Sequence[Row]) -> str | None:
    """The class that a chart leaves out, as it is all that the others are not."""
    for row in prevalence:
        if min(row["source"], row["estimate"]) > DWARFS:
            name: str = row["class"]
            return name
    return None


def bars(prevalence: Sequence[Row]) -> dict[str, Any]:
    """Shares with their intervals, beside source and count."""
    left_out = rest(prevalence)
    rows = [row for row in prevalence if row["class"] != left_out]
    if len(rows) > MOST_BARS:
        rows = moved(rows)[:MOST_BARS]
    return {"rows": [{name: row[name] for name in COLUMNS} for row in rows], "rest": left_out}


def trace(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """The prior of each class by iteration; None where no trace was kept."""
    steps = content.get("trace")
    if not steps:
        return None
    prevalence = content["prevalence"]
    names = [row["class"] for row in prevalence]
    left_out = rest(prevalence)
    shown = [row["class"] for row in moved(prevalence) if row["class"] != left_out][:MOST_LINES]
    lines = {name: [step[names.index(name)] for step in steps] for name in shown}
    return {"lines": lines, "rest": left_out}


def histogram(content: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Scores of a class before and after; None where they were not counted."""
    kept = content.get("histogram")
    if not kept:
        return None
    return {
        "class": name,
        "bins": kept["bins"],
        "before": kept["before"][name],
        "after": kept["after"][name],
    }
