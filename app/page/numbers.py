"""How numbers and moments are told to people."""

from datetime import datetime
from math import floor, isfinite, log10

NONE = "–"
SMALLEST_CHANCE = 1e-6
SMALLEST_P = 1e-12


def percent(share: float | None) -> str:
    """A share in per cent: two digits below ten, none lost at the ends."""
    if share is None or not isfinite(share):
        return NONE
    value = 100 * share
    if 0 < value < 0.01:
        return "< 0.01 %"
    digits = 2 if value < 1 and value != 0 else 1
    return f"{value:.{digits}f} %"


def between(lower: float | None, upper: float | None) -> str:
    """An interval in per cent: ``1.4–3.4 %``."""
    if lower is None or upper is None:
        return NONE
    return f"{percent(lower).removesuffix(' %')}–{percent(upper)}"


def chance(p_value: float) -> str:
    """A p-value as a number of batches: ``2 of 10,000 batches``."""
    if p_value < SMALLEST_CHANCE:
        return "fewer than 1 of 1,000,000 batches"
    # The smallest power of ten that leaves one digit; two where there are few batches anyway.
    of = 10 ** max(2, -floor(log10(p_value)))
    count = round(p_value * of)
    return f"{max(count, 1)} of {of:,} batches"


def p_value(value: float | None) -> str:
    """A p-value with two digits."""
    if value is None:
        return NONE
    if value < SMALLEST_P:
        return "< 1e-12"
    return f"{value:.2g}" if value >= 0.001 else f"{value:.1e}"


def number(value: object) -> str:
    """A number of some kind: whole ones with separators, others with four digits."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return f"{int(value):,}" if abs(value) < 1e15 else f"{value:.3g}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def moment(value: str | datetime | None) -> str:
    """A time in UTC, to the minute."""
    if value is None:
        return NONE
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return f"{value:%Y-%m-%d %H:%M}"


def span(seconds: float) -> str:
    """A length of time in its largest unit that divides it: ``1 hour``, ``30 days``."""
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        count, rest = divmod(seconds, length)
        if count and not rest:
            return f"{int(count)} {unit}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"
