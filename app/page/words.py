"""What an estimate comes to, in words: its state, and the shift in one plain sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from app.core.warnings import WarningCode
from app.page.numbers import between, chance, percent
from app.stored.estimates import StoredEstimate

State = Literal["waiting", "steady", "shifted", "doubtful"]
DOUBTS = frozenset(
    {
        WarningCode.NOT_PRIOR_SHIFT,
        WarningCode.SOLVER,
        WarningCode.NOT_IDENTIFIABLE,
        WarningCode.STOPPED_SHORT,
        WarningCode.SCORES_REVERSED,
    }
)
"""Warnings that speak against the numbers themselves."""


class Moved(Protocol):
    """A class that may have moved from its share of the source."""

    @property
    def estimate(self) -> float:
        """Its share of the batch's population."""

    @property
    def source(self) -> float:
        """Of the training data's."""


Row = TypeVar("Row", bound=Moved)


@dataclass(frozen=True)
class Told:
    """A state and its words."""

    state: State
    words: str


WAITING = Told("waiting", "No batch yet")


def state(estimate: StoredEstimate | None) -> Told:
    """How things stand after an estimate."""
    if estimate is None:
        return WAITING
    if any(warning.code in DOUBTS for warning in estimate.warnings):
        return Told("doubtful", "Doubtful, read the warnings")
    shift = estimate.shift
    if shift is None:
        return Told("steady", "Not tested")
    return Told("shifted", "Shift detected") if shift.detected else Told("steady", "No shift")


def moved(prevalence: Sequence[Row]) -> list[Row]:
    """The classes by how far they moved from the source, the rarer one first of two that tie."""
    return sorted(prevalence, key=lambda row: (-round(_change(row), 9), row.source))


def sentence(estimate: StoredEstimate) -> str:
    """The shift result: what moved, by how much, and how often chance does that."""
    row = moved(estimate.prevalence)[0]
    name, source, share = row.class_, row.source, row.estimate
    ends = between(row.lower, row.upper)
    interval = "" if row.lower is None else f" ({ends})"
    shift = estimate.shift
    if shift is None:
        return (
            f"{name} was {percent(source)} of the training data and is estimated at "
            f"{percent(share)}{interval} here; this batch could not be tested for a shift."
        )
    often = f"a difference like this appears by chance in {chance(shift.p_value)}"
    if not shift.detected:
        return (
            f"No shift was detected: {name} was {percent(source)} of the training data and is "
            f"estimated at {percent(share)}{interval} here; {often}."
        )
    verb = "rose" if share > source else "fell"
    return f"{name} {verb} from {percent(source)} to {percent(share)}{interval}; {often}."


def _change(row: Moved) -> float:
    return abs(row.estimate - row.source)
