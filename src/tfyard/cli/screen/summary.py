"""Summary of a run as text: a table of its tasks and the curve of its loss."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite

from tfyard.cli.screen.rows import columns as terminal_columns
from tfyard.cli.screen.rows import hanging
from tfyard.model.run_record import RunRecord
from tfyard.overview.curves import Curve, share
from tfyard.overview.progress import Progress
from tfyard.overview.steps import START_COLUMNS
from tfyard.overview.summary import TASK_COLUMNS, details, headline, start_rows, task_row
from tfyard.overview.wording import number

PLOT_WIDTH, PLOT_HEIGHT = 60, 6
BLOCKS = " ▁▂▃▄▅▆▇█"
FEWEST_POINTS = 3
"""Minimum number of points of a curve."""


def summary(
    record: RunRecord, progress: Progress, why: Sequence[str] = (), disruptions: Sequence[str] = ()
) -> Iterator[str]:
    """Lines of the summary. `why`: the output of `tfyard why`, if the run failed; `disruptions`: sentences about
    tasks that ended because others were taken away."""
    yield headline(record)
    yield ""
    yield from columns([TASK_COLUMNS, *map(task_row, record.tasks)])
    if starts := start_rows(record):
        yield ""
        yield from columns([START_COLUMNS, *starts])
    yield from (hanging(text, terminal_columns()) for text in details(why, progress, disruptions))
    curve = progress.loss()
    if curve is not None:
        yield from plot(curve)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def plot(curve: Curve, width: int = PLOT_WIDTH) -> Iterator[str]:
    """A curve of block characters: values are averaged into columns, rows are drawn from the top."""
    finite = [value for _, value in curve.points if isfinite(value)]
    if len(finite) < FEWEST_POINTS:
        return
    columns = _columns(finite, width)
    low, high = min(columns), max(columns)
    heights = [1 + round(share(value, low, high, flat=0) * (PLOT_HEIGHT * 8 - 1)) for value in columns]
    label = max(len(number(low)), len(number(high)))
    hidden = ", without those that are nan or inf" if len(finite) < len(curve.points) else ""
    yield f"{curve.name}, {_extent(curve)}{hidden}"
    for row in range(PLOT_HEIGHT - 1, -1, -1):
        cells = "".join(BLOCKS[max(0, min(8, height - row * 8))] for height in heights)
        mark = number(high) if row == PLOT_HEIGHT - 1 else number(low) if row == 0 else ""
        yield f"  {mark:>{label}} ┤{cells}"


def _extent(curve: Curve) -> str:
    """The range of steps, or the number of values if steps repeat, as in a progress bar without epochs."""
    first, last = curve.points[0][0], curve.points[-1][0]
    return f"{curve.unit}s {first:,} to {last:,}" if first < last else f"{len(curve.points):,} reports"


def _columns(values: list[float], width: int) -> list[float]:
    if len(values) <= width:
        return values
    edges = [len(values) * i // width for i in range(width + 1)]
    return [sum(value / (b - a) for value in values[a:b]) for a, b in pairwise(edges)]
