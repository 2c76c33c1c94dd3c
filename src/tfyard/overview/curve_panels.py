"""Curves of several jobs as a picture: a panel for each metric, in which all jobs have the same scale."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tfyard.overview.curves import share
from tfyard.overview.metrics import COLOURS, escaped
from tfyard.overview.wording import number

Curve = tuple[str, Sequence[tuple[int, float]]]
"""The label of a job, and its points."""
WIDTH, HEIGHT, LEFT, TOP, LINE = 720, 220, 70, 40, 16
MOST_PANELS = 12


def svg(metrics: Mapping[str, Sequence[Curve]], title: str) -> str:
    """Text and lines only, so that any browser shows them."""
    panels, y = list[str](), TOP
    for name, curves in list(metrics.items())[:MOST_PANELS]:
        panels += _panel(name, curves, y)
        y += HEIGHT + LINE * (len(curves) + 2)
    size = f'width="{WIDTH}" height="{y}"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="16">{escaped(title)}</text>',
    ]
    return "\n".join([*head, *panels, "</svg>\n"])


def _panel(name: str, curves: Sequence[Curve], top: int) -> Iterator[str]:
    xs, low, high = _extent(curves)
    inner = HEIGHT - 2 * LINE
    frame = f'x="{LEFT}" y="{top + LINE}" width="{WIDTH - LEFT - 20}" height="{inner}"'
    yield f'<text x="{LEFT}" y="{top + 8}" font-weight="bold">{escaped(name)}</text>'
    yield f'<rect {frame} fill="none" stroke="#ccc"/>'
    for value, y in ((high, top + LINE + 10), (low, top + LINE + inner)):
        yield f'<text x="{LEFT - 6}" y="{y}" text-anchor="end">{number(value)}</text>'
    for x, place, anchor in ((xs[0], LEFT, "start"), (xs[1], WIDTH - 20, "end")):
        yield f'<text x="{place}" y="{top + LINE + inner + 14}" text-anchor="{anchor}">{x:,}</text>'
    for index, (label, points) in enumerate(curves):
        colour = COLOURS[index % len(COLOURS)]
        placed = ((share(x, *xs), 1 - share(y, low, high)) for x, y in points)
        wide, first = WIDTH - LEFT - 20, top + LINE
        drawn = " ".join(f"{LEFT + x * wide:.1f},{first + y * inner:.1f}" for x, y in placed)
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{drawn}"/>'
        legend = f"{label}: {number(points[0][1])} to {number(points[-1][1])}"
        below = top + HEIGHT + LINE * (index + 1)
        yield f'<text x="{LEFT}" y="{below}" fill="{colour}">{escaped(legend)}</text>'


def _extent(curves: Iterable[Curve]) -> tuple[tuple[int, int], float, float]:
    every = [point for _, points in curves for point in points]
    xs, ys = [x for x, _ in every], [y for _, y in every]
    return (min(xs), max(xs)), min(ys), max(ys)
