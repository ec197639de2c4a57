"""Line charts side by side, as SVG."""

from collections.abc import Sequence

from app.core.arrays import Floats

COLOURS = ("#1b6ca8", "#d1495b", "#6a994e", "#8d6a9f", "#e08e0b")
WIDTH, HEIGHT, LEFT, TOP, GAP = 230, 190, 46, 34, 24


def charts(
    titles: Sequence[str], names: Sequence[str], x: Sequence[float], y: Floats, label: str
) -> str:
    """``y``: charts × points × lines, all on one scale; ``label``: of the horizontal axis."""
    top = 1.05 * float(y.max())
    parts = [
        f'<text x="{_left(i) + WIDTH / 2}" y="{TOP - 12}" text-anchor="middle">{title}</text>'
        for i, title in enumerate(titles)
    ]
    for i, chart in enumerate(y):
        parts.append(_frame(i, x, top, label))
        for j, colour in enumerate(COLOURS[: len(names)]):
            points = " ".join(
                f"{_across(i, v, x):.1f},{_down(float(w), top):.1f}"
                for v, w in zip(x, chart[:, j], strict=True)
            )
            parts.append(
                f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
    for j, name in enumerate(names):
        at = LEFT + j * 150
        line = TOP + HEIGHT + 52
        parts.append(f'<rect x="{at}" y="{line - 8}" width="18" height="4" fill="{COLOURS[j]}"/>')
        parts.append(f'<text x="{at + 24}" y="{line}">{name}</text>')
    width, height = _left(len(titles)), TOP + HEIGHT + 64
    style = 'font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}>'
    white = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, white, *parts, "</svg>"]) + "\n"


def _left(i: int) -> float:
    return LEFT + i * (WIDTH + GAP)


def _across(i: int, value: float, x: Sequence[float]) -> float:
    return _left(i) + WIDTH * (value - x[0]) / (x[-1] - x[0])


def _down(value: float, top: float) -> float:
    return TOP + HEIGHT * (1 - value / top)


def _frame(i: int, x: Sequence[float], top: float, label: str) -> str:
    left, bottom = _left(i), TOP + HEIGHT
    parts = [
        f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>'
    ]
    for value in x[::2]:
        at = _across(i, value, x)
        parts.append(f'<text x="{at:.1f}" y="{bottom + 14}" text-anchor="middle">{value:g}</text>')
    parts.append(
        f'<text x="{left + WIDTH / 2}" y="{bottom + 30}" text-anchor="middle">{label}</text>'
    )
    for part in range(5) if i == 0 else ():
        value = top * part / 4
        at = _down(value, top) + 4
        parts.append(f'<text x="{left - 4}" y="{at:.1f}" text-anchor="end">{value:.2f}</text>')
    return "\n".join(parts)
