"""The metrics that tasks reported: from a run's record or from a log, as rows, as CSV and as a picture."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from tfyard.logs.epochs import Epochs
from tfyard.logs.lines import Lines, time_of
from tfyard.logs.readings import COUNTS, Reading, read_line, storable, stored
from tfyard.logs.terminal_text import without_colours
from tfyard.model.run_events import Metric
from tfyard.overview.curves import CurveBox, Points, finite, polyline
from tfyard.overview.progress import LEADING, Progress
from tfyard.overview.wording import number

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\S+) ")
WIDTH, HEIGHT, MARGIN = 720, 360, 60
FRAME = CurveBox(MARGIN, 40, WIDTH - 2 * MARGIN, HEIGHT - 80)
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")


class Point(Struct, frozen=True, kw_only=True):
    """The metrics of one line of a task's log."""

    at: float
    """The time of the line, in seconds since 1970."""
    task: str
    values: dict[str, float]
    step: int | None = None
    total: int | None = None
    epoch: int | None = None
    epochs: int | None = None


def from_row(row: dict[str, Any]) -> Point:
    """The point of a row of a run's metrics.jsonl."""
    values = stored({name: value for name, value in row.items() if name not in ("at", "task", *COUNTS)})
    counts: dict[str, Any] = {name: row.get(name) for name in COUNTS}
    return Point(at=row["at"], task=row["task"], values=values, **counts)


def row(task: str, reading: Reading, at: float) -> dict[str, object]:
    """A row of metrics.jsonl, the reverse of `from_row`."""
    counts = {name: count for name in COUNTS if (count := getattr(reading, name)) is not None}
    return {**storable(reading.values), "at": at, "task": task, "step": None, **counts}


def from_log(task: str, log: str) -> list[Point]:
    """Points of a log with timestamps, as Kubernetes returns it. Of a rewritten line, the final state counts."""
    points, epochs = list[Point](), Epochs()
    for line in log.split("\n"):
        stamp = _STAMP.match(line)
        if stamp is None:
            continue
        if reading := read_line(_final(line[stamp.end() :])):
            placed = epochs.place(task, reading)
            points.append(Point(at=_seconds(stamp[1]), task=task, **asdict(placed)))
    return points


def _final(line: str) -> str:
    """The final state of a line that was rewritten."""
    return re.split(r"[\r\b]+", line.rstrip("\r\b"))[-1]


class LogRows:
    """Rows of metrics.jsonl for logs, as they are followed."""

    def __init__(self) -> None:
        self._epochs = Epochs()

    def of(self, lines: Lines) -> list[dict[str, object]]:
        """Rows of those lines that have metrics and a time."""
        rows = list[dict[str, object]]()
        for text, stamp in zip(lines.texts, lines.stamps, strict=False):
            line = text.decode("utf-8", "replace")
            if not lines.start.container and (reading := read_line(without_colours(_final(line)))):
                placed = self._epochs.place(lines.start.name, reading)
                rows.append(row(lines.start.task, placed, _seconds(stamp.decode())))
        return rows


def progress(points: Iterable[Point], total: int | None = None) -> Progress:
    """`total`: number of steps of the whole training, if known."""
    result = Progress(total)
    for point in points:
        fields = asdict(point)
        at = fields.pop("at")
        result.note(Metric(**fields), at)
    return result


def leading(tasks: set[str]) -> list[str]:
    """Tasks whose metrics show how the training goes: the leader, and the evaluator."""
    leaders = [f"{role}-0" for role in LEADING if f"{role}-0" in tasks]
    return [*leaders[:1], *({"evaluator-0"} & tasks)] or sorted(tasks)


def rows(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """A header, and a row for each point; a column for each metric that any of them has."""
    names = list(dict.fromkeys(name for point in points for name in point.values))
    counts = [name for name in ("epoch", "step") if any(getattr(point, name) is not None for point in points)]
    header = ("time", "task", *counts, *names)
    return [header, *(_row(point, counts, names) for point in points)]


def csv(points: Sequence[Point]) -> str:
    return "".join(",".join(map(quoted, row)) + "\r\n" for row in rows(points))


def plain(point: Point) -> dict[str, Any]:
    """The point as JSON values: JSON has neither nan nor inf."""
    counts = {name: getattr(point, name) for name in COUNTS if getattr(point, name) is not None}
    return {"time": _time(point), "task": point.task, **counts, **storable(point.values)}


def svg(progress: Progress, title: str) -> str:
    """All curves, each scaled to its own span; text and lines only, so that any browser shows them."""
    known = {key: finite(points) for key, points in progress.history.items()}
    curves = [(f"{key[1]} {key[0]}", points) for key, points in known.items() if len(points) > 1]
    height = HEIGHT + 16 * max(1, len(curves[: len(COLOURS)]))
    size = f'width="{WIDTH}" height="{height}"'
    frame = f'x="{MARGIN}" y="40" width="{WIDTH - 2 * MARGIN}" height="{HEIGHT - 80}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<rect {frame} fill="none" stroke="#ccc"/>',
        f'<text x="{MARGIN}" y="24" font-size="16">{escaped(title)}</text>',
    ]
    for index, (name, points) in enumerate(curves[: len(COLOURS)]):
        parts += _curve(name, points, index)
    return "\n".join([*parts, "</svg>\n"])


def _curve(name: str, points: Points, index: int) -> list[str]:
    low, high = min(y for _, y in points), max(y for _, y in points)
    legend = (
        f"{name}: {number(points[0][1])} to {number(points[-1][1])}, least {number(low)}, most {number(high)}"
    )
    colour, drawn = COLOURS[index], polyline(points, FRAME)
    return [
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{drawn}"/>',
        f'<text x="{MARGIN}" y="{HEIGHT + 16 * index}" fill="{colour}">{escaped(legend)}</text>',
    ]


def _row(point: Point, counts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    cells = [getattr(point, name) for name in counts] + [point.values.get(name) for name in names]
    return (_time(point), point.task, *("" if cell is None else _cell(cell) for cell in cells))


def _time(point: Point) -> str:
    return (_EPOCH + timedelta(seconds=point.at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cell(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if re.search(r'[",\r\n]', cell) else cell


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _seconds(stamp: str) -> float:
    time = time_of(stamp)
    return time.timestamp() if time else 0.0
