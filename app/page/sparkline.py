"""A small line of shares over time, as SVG coordinates that the server works out itself."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, MARGIN = 120.0, 32.0, 3.0


@dataclass(frozen=True)
class Sparkline:
    """``line`` and ``band``: points of SVG; ``source``: the height of the source prior."""

    line: str
    band: str
    source: float
    end: tuple[float, float]


def sparkline(
    shares: Sequence[float], ends: Sequence[tuple[float, float]], source: float
) -> Sparkline | None:
    """Of shares with their intervals, oldest first; None of fewer than two."""
    if len(shares) < 2:
        return None
    top = max(source, *shares, *(upper for _, upper in ends)) or 1.0
    step = (WIDTH - 2 * MARGIN) / (len(shares) - 1)

    def x(i: int) -> float:
        return round(MARGIN + step * i, 1)

    def y(share: float) -> float:
        return round(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share / top, 1)

    over = [f"{x(i)},{y(upper)}" for i, (_, upper) in enumerate(ends)]
    under = [f"{x(i)},{y(lower)}" for i, (lower, _) in enumerate(ends)]
    return Sparkline(
        line=" ".join(f"{x(i)},{y(share)}" for i, share in enumerate(shares)),
        band=" ".join([*over, *reversed(under)]),
        source=y(source),
        end=(x(len(shares) - 1), y(shares[-1])),
    )
