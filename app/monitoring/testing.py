"""The test of one window, and of all that came before it."""

from dataclasses import dataclass

from app.core.prevalence.source import SourceModel
from app.core.warnings import Warning
from app.estimation import Batch, Estimate


@dataclass(frozen=True)
class Tested:
    """What the windows' test said: ``p_value`` against ``level``, and the size of the effect."""

    p_value: float
    level: float
    detected: bool
    effect_size: float


def tested(
    model: SourceModel, batch: Batch, result: Estimate, level: float, minimum_effect: float
) -> Tested | None:
    """Whether a window differs from the source; None where it has no likelihood."""
    shift = result.shift
    if shift is None:
        return None
    detected = shift.p_value <= level and shift.effect_size > minimum_effect
    return Tested(shift.p_value, level, detected, shift.effect_size)


def advice(model: SourceModel, rows: int, level: float) -> tuple[Warning, ...]:
    """What stands in the way of alarming at this level on windows of so many rows."""
    return ()
