"""The end of a run, in a few lines: how it went, for whom, why not, and where everything is."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite

from tfyard.backends.local.run_directory import RunRecord, TaskRecord
from tfyard.overview.progress import Progress, duration, number, size

PLOT_WIDTH, PLOT_HEIGHT = 60, 6
BLOCKS = " ▁▂▃▄▅▆▇█"
FEWEST_POINTS = 3
"""Fewer are no curve."""
MESSAGE_LINES = 12


def summary(record: RunRecord, progress: Progress) -> Iterator[str]:
    took = duration((record.ended - record.started).total_seconds()) if record.ended else "?"
    yield f"{record.job}: {record.phase} after {took}"
    yield ""
    yield from table(record.tasks)
    if record.phase == "Failed" and record.message:
        yield ""
        yield from record.message.splitlines()[-MESSAGE_LINES - 1 :]
    if progress.values:
        yield ""
        yield "last: " + "  ".join(f"{name} {number(value)}" for name, value in progress.values.items())
    curve = progress.loss()
    if curve is not None:
        yield from plot(*curve)


def table(tasks: tuple[TaskRecord, ...]) -> Iterator[str]:
    yield from columns([("TASK", "OUTCOME", "EXIT CODE", "RESTARTS", "CPU", "MEMORY"), *map(_row, tasks)])


def _row(task: TaskRecord) -> tuple[str, ...]:
    code = "" if task.exit_code is None else str(task.exit_code)
    used = (f"{task.cpu:.1f}s", size(task.peak)) if task.peak else ("", "")
    return (task.name, task.outcome, code, str(task.starts - 1), *used)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def plot(name: str, points: list[tuple[int, float]], width: int = PLOT_WIDTH) -> Iterator[str]:
    """A curve in block letters: averaged into columns, drawn row by row from the top."""
    finite = [value for _, value in points if isfinite(value)]
    if len(finite) < FEWEST_POINTS:
        return
    columns = _columns(finite, width)
    low, high = min(columns), max(columns)
    heights = [1 + round(_share(value, low, high) * (PLOT_HEIGHT * 8 - 1)) for value in columns]
    label = max(len(number(low)), len(number(high)))
    hidden = ", without those that are nan or inf" if len(finite) < len(points) else ""
    yield f"{name}, {_extent(points)}{hidden}"
    for row in range(PLOT_HEIGHT - 1, -1, -1):
        cells = "".join(BLOCKS[max(0, min(8, height - row * 8))] for height in heights)
        mark = number(high) if row == PLOT_HEIGHT - 1 else number(low) if row == 0 else ""
        yield f"  {mark:>{label}} ┤{cells}"


def _extent(points: list[tuple[int, float]]) -> str:
    """Keras counts the steps anew in every epoch, and what is read is the last of each."""
    first, last = points[0][0], points[-1][0]
    return f"steps {first:,} to {last:,}" if first != last else f"{len(points):,} times step {last:,}"


def _columns(values: list[float], width: int) -> list[float]:
    if len(values) <= width:
        return values
    edges = [len(values) * i // width for i in range(width + 1)]
    return [sum(value / (b - a) for value in values[a:b]) for a, b in pairwise(edges)]


def _share(value: float, low: float, high: float) -> float:
    """How far up the value is, from 0 to 1. Halved, since the span of two floats may be too large for one."""
    span = high / 2 - low / 2
    return (value / 2 - low / 2) / span if span else 0
