"""A picture of lines, written out as SVG."""

from collections.abc import Mapping, Sequence
from math import isfinite, log10

WIDTH, HEIGHT, MARGIN = 640, 400, 60
COLOURS = ("#1b6ca8", "#c0392b", "#27864a", "#8e5ea2", "#b9770e")


def lines(
    title: str, at: Sequence[float], curves: Mapping[str, Sequence[float]], vertical: str
) -> str:
    """Curves over a logarithmic horizontal axis; values that are not finite are left out."""
    values = [v for curve in curves.values() for v in curve if isfinite(v)]
    low, high = min(values), max(values)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - log10(at[0])) / (log10(at[-1]) - log10(at[0]))
        up = (y - low) / (high - low or 1)
        return MARGIN + across * (WIDTH - 3 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="24" font-size="14">{title}</text>',
        f'<text x="{MARGIN}" y="46">{vertical}</text>',
    ]
    for x in at:
        left, bottom = place(x, low)
        parts.append(f'<text x="{left:.0f}" y="{bottom + 20:.0f}">{x:g}</text>')
    for step in range(5):
        y = low + (high - low) * step / 4
        parts.append(f'<text x="8" y="{place(at[0], y)[1]:.0f}">{y:.2f}</text>')
    for colour, (name, curve) in zip(COLOURS, curves.items(), strict=False):
        found = [place(x, y) for x, y in zip(at, curve, strict=True) if isfinite(y)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in found)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = found[-1]
        parts.append(f'<text x="{x + 6:.0f}" y="{y:.0f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])
