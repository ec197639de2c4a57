"""What charts are drawn from: the numbers of the tables, no more classes than a chart can bear."""

from collections.abc import Sequence

from app.page.words import moved
from app.stored.estimates import StoredEstimate, StoredShare

MOST_BARS = 30
MOST_LINES = 8
DWARFS = 0.8
"""A class with more than this share, always, is left out: the others could not be seen."""
COLUMNS = {"source", "counted", "estimate", "lower", "upper"}


def rest(prevalence: Sequence[StoredShare]) -> str | None:
    """The class that a chart leaves out, as it is all that the others are not."""
    for row in prevalence:
        if min(row.source, row.estimate) > DWARFS:
            return row.class_
    return None


def bars(prevalence: Sequence[StoredShare]) -> dict[str, object]:
    """Shares with their intervals, beside source and count."""
    left_out = rest(prevalence)
    rows = [row for row in prevalence if row.class_ != left_out]
    if len(rows) > MOST_BARS:
        rows = moved(rows)[:MOST_BARS]
    return {"rows": [_bar(row) for row in rows], "rest": left_out}


def _bar(row: StoredShare) -> dict[str, object]:
    return {"class": row.class_, **row.model_dump(include=COLUMNS)}


def trace(estimate: StoredEstimate) -> dict[str, object] | None:
    """The prior of each class by iteration; None where no trace was kept."""
    steps = estimate.trace
    if not steps:
        return None
    prevalence = estimate.prevalence
    names = [row.class_ for row in prevalence]
    left_out = rest(prevalence)
    shown = [row.class_ for row in moved(prevalence) if row.class_ != left_out][:MOST_LINES]
    lines = {name: [step[names.index(name)] for step in steps] for name in shown}
    return {"lines": lines, "rest": left_out}


def histogram(estimate: StoredEstimate, name: str) -> dict[str, object] | None:
    """Scores of a class before and after; None where they were not counted."""
    kept = estimate.histogram
    if not kept:
        return None
    return {
        "class": name,
        "bins": kept.bins,
        "before": kept.before[name],
        "after": kept.after[name],
    }
