"""Line charts side by side, as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log10

import numpy as np

from app.core.arrays import Floats

COLOURS = ("#1b6ca8", "#d1495b", "#6a994e", "#8d6a9f", "#e08e0b")
LEFT, TOP, GAP, LEGEND = 46, 34, 24, 150
MOST_TICKS = 6


@dataclass(frozen=True)
class Chart:
    """Where the ``index``-th chart lies, and where a value lies in it.

    ``x``: the points of the horizontal axis; ``low`` and ``high``: ends of the vertical one.
    """

    index: int
    x: Sequence[float]
    low: float
    high: float
    logarithmic: bool
    width: int
    height: int

    @property
    def left(self) -> float:
        """Its edge."""
        return LEFT + self.index * (self.width + GAP)

    @property
    def bottom(self) -> float:
        """Its edge."""
        return TOP + self.height

    def across(self, value: float) -> float:
        """The place of a value on the horizontal axis."""
        scale = log10 if self.logarithmic else float
        first, last = scale(self.x[0]), scale(self.x[-1])
        return self.left + self.width * (scale(value) - first) / (last - first)

    def down(self, value: float) -> float:
        """The place of a value on the vertical axis."""
        return TOP + self.height * (1 - (value - self.low) / (self.high - self.low))

    def frame(self, title: str, label: str) -> list[str]:
        """Its box, the words around it, and numbers at its axes."""
        middle = self.left + self.width / 2
        parts = [
            f'<text x="{middle}" y="{TOP - 12}" text-anchor="middle">{title}</text>',
            f'<rect x="{self.left}" y="{TOP}" width="{self.width}" height="{self.height}" '
            'fill="none" stroke="#888"/>',
            f'<text x="{middle}" y="{self.bottom + 30}" text-anchor="middle">{label}</text>',
        ]
        for value in self.x[:: -(-len(self.x) // MOST_TICKS)]:
            at, below = self.across(value), self.bottom + 14
            parts.append(f'<text x="{at:.1f}" y="{below}" text-anchor="middle">{value:g}</text>')
        for part in range(5) if self.index == 0 else ():
            value = self.low + (self.high - self.low) * part / 4
            at, end = self.down(value) + 4, self.left - 4
            parts.append(f'<text x="{end}" y="{at:.1f}" text-anchor="end">{value:.2f}</text>')
        return parts

    def line(self, values: Floats, colour: str) -> str:
        """A line through the values that are finite."""
        points = " ".join(
            f"{self.across(v):.1f},{self.down(float(w)):.1f}"
            for v, w in zip(self.x, values, strict=True)
            if isfinite(w)
        )
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'


def charts(
    titles: Sequence[str],
    names: Sequence[str],
    x: Sequence[float],
    y: Floats,
    label: str,
    *,
    logarithmic: bool = False,
    width: int = 230,
    height: int = 190,
) -> str:
    """``y``: charts × points × lines, all on one scale that shows zero; NaN is left out.

    ``label``: of the horizontal axis, which may be ``logarithmic``; ``width``, ``height``: of each.
    """
    low, high = min(0.0, float(np.nanmin(y))), 1.05 * float(np.nanmax(y))
    parts = []
    for i, (title, values) in enumerate(zip(titles, y, strict=True)):
        chart = Chart(i, x, low, high, logarithmic, width, height)
        lines = [chart.line(values[:, j], c) for j, c in enumerate(COLOURS[: len(names)])]
        parts += [*chart.frame(title, label), *lines]
    across = max(LEFT + len(titles) * (width + GAP), LEFT + LEGEND * len(names))
    down = TOP + height + 64
    style = 'font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" {style}>'
    white = f'<rect width="{across}" height="{down}" fill="white"/>'
    return "\n".join([head, white, *parts, *_legend(names, down - 12), "</svg>"]) + "\n"


def _legend(names: Sequence[str], y: int) -> list[str]:
    parts = []
    for j, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        at = LEFT + j * LEGEND
        parts.append(f'<rect x="{at}" y="{y - 8}" width="18" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{at + 24}" y="{y}">{name}</text>')
    return parts
