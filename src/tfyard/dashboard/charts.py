"""Pictures as SVG, drawn here so that they need no script: sparklines, curves with the value under the pointer,
and the timeline of attempts. Colours are classes: the stylesheet knows whether it is dark."""

import bisect
from collections.abc import Callable, Sequence
from datetime import datetime

from markupsafe import Markup, escape
from msgspec import Struct

from tfyard.dashboard import times
from tfyard.overview import comparison as sides
from tfyard.overview.attempts import UNDER_WAY, Attempt
from tfyard.overview.comparison import Comparison
from tfyard.overview.curve_panels import MOST_PANELS
from tfyard.overview.curves import Curve, CurveBox, Points, finite, polyline, scaled
from tfyard.overview.progress import Progress
from tfyard.overview.wording import duration, number

SPARK = CurveBox(2, 3, 92, 18)
CHART = CurveBox(84, 12, 536, 150)
"""Left of it there is room for numbers such as -1.234e-05."""
CHART_WIDTH, CHART_HEIGHT = 640, 190
MOST_POINTS = 160
"""Points of a curve that answer to the pointer; more would be narrower than it."""
COLOURS = 8
"""Number of colours for curves in the stylesheet."""
TEXT_LINE = 14
STEP = "step"
TIMELINE_WIDTH, LABELS, ROW = 1180, 120, 22


def sparkline(progress: Progress | None) -> Markup:
    return spark(progress.loss() if progress else None)


def spark(curve: Curve | None) -> Markup:
    points = finite(curve.points) if curve else []
    if curve is None or len(points) < 2:
        return Markup()
    points = thinned(points)
    label = f"{curve.name}: {number(points[0][1])} to {number(points[-1][1])}"
    end_x, end_y = scaled(points, SPARK)[-1]
    return Markup(
        f'<svg class="spark" viewBox="0 0 96 24" width="96" height="24" role="img" aria-label="{escape(label)}">'
        f'<polyline points="{polyline(points, SPARK)}"/>'
        f'<circle cx="{end_x:.1f}" cy="{end_y:.1f}" r="2"/></svg>'
    )


class Chart(Struct, frozen=True):
    title: str
    last: str
    svg: Markup


class ChartLine(Struct, frozen=True):
    label: str
    """Label of the curve; empty: it is the only one of its picture."""
    points: list[tuple[float, float]]
    kind: str
    """CSS class of the curve: its colour, and whether it is the baseline."""

    @property
    def last(self) -> str:
        return f"{self.label} {number(self.points[-1][1])}".lstrip()


def charts(progress: Progress | None) -> list[Chart]:
    """One picture for each metric, with a curve for each task that reports it."""
    curves: dict[str, dict[str, Points]] = {}
    for (task, metric), points in (progress.history if progress else {}).items():
        if len(known := finite(points)) > 1:
            curves.setdefault(metric, {})[task] = known
    loss = progress.loss() if progress else None
    return [_of_tasks(metric, tasks, loss.unit if loss else STEP) for metric, tasks in curves.items()]


def of_curve(curve: Curve) -> Chart | None:
    """The curve as a picture; None: it has fewer than two points."""
    points = finite(curve.points)
    return (
        _chart(curve.name, [ChartLine("", thinned(points), colour(0))], curve.unit)
        if len(points) > 1
        else None
    )


def _of_tasks(metric: str, tasks: dict[str, Points], unit: str) -> Chart:
    lines = [
        ChartLine(task if len(tasks) > 1 else "", thinned(points), colour(turn))
        for turn, (task, points) in enumerate(tasks.items())
    ]
    return _chart(metric, lines, unit)


def compared(comparison: Comparison) -> list[Chart]:
    """One picture for each metric, with a curve for each job: always of the same colour, the baseline dashed."""
    kinds = {label: colour(turn) for turn, label in enumerate(comparison.labels)}
    kinds[comparison.labels[0]] += " baseline"
    losses = [loss for job in comparison.jobs if (loss := sides.progress(job).loss())]
    return [
        _chart(
            metric,
            [ChartLine(label, thinned(points), kinds[label]) for label, points in curves],
            losses[0].unit if losses else STEP,
        )
        for metric, curves in list(sides.curves(comparison).items())[:MOST_PANELS]
    ]


def colour(turn: int) -> str:
    return f"c{turn % COLOURS}"


def thinned(points: Points, most: int = MOST_POINTS) -> list[tuple[float, float]]:
    every = -(-len(points) // most)
    return [*points[:-1:every], points[-1]] if every > 1 else list(points)


def _chart(metric: str, lines: Sequence[ChartLine], unit: str) -> Chart:
    """Several curves in one picture, with the same scale for all."""
    everything = [point for line in lines for point in line.points]
    lows = [min(each) for each in zip(*everything, strict=True)]
    highs = [max(each) for each in zip(*everything, strict=True)]
    corners = [(lows[0], lows[1]), (highs[0], highs[1])]
    places = [scaled([*corners, *line.points], CHART)[2:] for line in lines]
    drawn = [
        f'<polyline class="{line.kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in there)}"/>'
        for line, there in zip(lines, places, strict=True)
    ]
    label = f"{metric} over {unit}s, from {number(lows[1])} to {number(highs[1])}"
    size = f'viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}"'
    inner = "".join((_frame(corners, unit), *drawn, *_marks(lines, places)))
    svg = f'<svg class="chart" {size} role="img" aria-label="{escape(label)}">{inner}</svg>'
    return Chart(metric, ", ".join(line.last for line in lines), Markup(svg))


def _frame(corners: Points, unit: str) -> str:
    (left, low), (right, high) = corners
    bottom, end = CHART.top + CHART.height, CHART.left + CHART.width
    middle = low / 2 + high / 2
    lines = "".join(
        f'<line x1="{CHART.left}" x2="{end}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{CHART.left - 8}" y="{y + 4:.1f}" text-anchor="end">{number(value)}</text>'
        for y, value in ((CHART.top, high), (CHART.top + CHART.height / 2, middle), (bottom, low))
    )
    return (
        f'<g class="axes">{lines}<text x="{CHART.left}" y="{bottom + 20}">{_step(left)}</text>'
        f'<text x="{end}" y="{bottom + 20}" text-anchor="end">{escape(unit)} {_step(right)}</text></g>'
    )


def _step(at: float) -> str:
    """A step as progress prints it: 22,336 and 1,234,567; a part of an epoch stays as it is."""
    return f"{at:,.0f}" if at == int(at) else f"{at:g}"


def _marks(lines: Sequence[ChartLine], places: Sequence[Points]) -> list[str]:
    """Invisible columns; each shows the points of all curves that are nearest while the pointer is over it."""
    columns = [px for px, _ in thinned(_columns(places), max(8, MOST_POINTS // len(lines)))]
    orders = [sorted((px, at) for at, (px, _) in enumerate(there)) for there in places]
    marks = []
    for at, px in enumerate(columns):
        before = columns[at - 1] if at else CHART.left
        after = columns[at + 1] if at + 1 < len(columns) else CHART.left + CHART.width
        left, right = (before + px) / 2, (px + after) / 2
        near = [_nearest(order, px) for order in orders]
        shown = [
            (line, line.points[point], there[point])
            for line, there, (where, point) in zip(lines, places, near, strict=True)
            if left <= where <= right
        ]
        marks.append(_mark(shown, left, right))
    return marks


def _columns(places: Sequence[Points]) -> Points:
    return sorted({(px, 0.0) for there in places for px, _ in there})


def _nearest(order: list[tuple[float, int]], px: float) -> tuple[float, int]:
    """Where the nearest point is, and its number; of several at one place, the last: a restarted task goes back to
    an earlier step."""
    after = bisect.bisect_right(order, (px, len(order)))
    before = order[after - 1] if after else order[0]
    return before if after == len(order) or px - before[0] <= order[after][0] - px else order[after]


def _mark(
    shown: Sequence[tuple[ChartLine, tuple[float, float], tuple[float, float]]], left: float, right: float
) -> str:
    is_late = left > CHART.left + CHART.width * 0.7
    anchor, shift = ("end", -8) if is_late else ("start", 8)
    top = CHART.top + 10 if len(shown) > 1 else 0
    parts = []
    for turn, (line, (x, value), (px, py)) in enumerate(shown):
        parts.append(f'<circle class="{line.kind}" cx="{px:.1f}" cy="{py:.1f}" r="3.5"/>')
        y = top + turn * TEXT_LINE if top else max(CHART.top + 10, py - 8)
        text = f"{line.label} {_step(x)}: {number(value)}".lstrip()
        parts.append(f'<text x="{px + shift:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')
    column = (
        f'<rect x="{left:.1f}" y="{CHART.top}" width="{max(1, right - left):.1f}" height="{CHART.height}"/>'
    )
    return f'<g class="mark">{column}{"".join(parts)}</g>'


# --- the timeline of attempts


def timeline(attempts: Sequence[Attempt], now: datetime) -> Markup:
    """A row for each task; a bar for each attempt: waiting, preparing, running, and how it ended."""
    known = [each for each in attempts if _begin(each)]
    if not known:
        return Markup()
    first = min(begin for each in known if (begin := _begin(each)))
    last = max(_end(each, now) for each in known)
    seconds = max(1.0, (last - first).total_seconds())
    tasks = list(dict.fromkeys(each.task for each in known))
    height = ROW * len(tasks) + 26

    def x(at: datetime) -> float:
        return LABELS + (at - first).total_seconds() / seconds * (TIMELINE_WIDTH - LABELS - 6)

    parts = []
    for turn, task in enumerate(tasks):
        top = turn * ROW + 4
        parts.append(
            f'<text class="name" x="{LABELS - 10}" y="{top + 12}" text-anchor="end">{escape(task)}</text>'
        )
        parts += [_bar(each, x, top, now) for each in known if each.task == task]
    bottom = ROW * len(tasks) + 18
    parts.append(f'<text x="{LABELS}" y="{bottom}">{times.moment(first, times.IN_SVG)}</text>')
    parts.append(
        f'<text x="{TIMELINE_WIDTH - 6}" y="{bottom}" text-anchor="end">'
        f"{times.moment(last, times.IN_SVG)} {times.zone(times.IN_SVG)}, {duration(seconds)}</text>"
    )
    label = f"timeline of {len(known)} attempts at {len(tasks)} tasks; the table below has the same"
    return Markup(
        f'<svg class="timeline" viewBox="0 0 {TIMELINE_WIDTH} {height}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _begin(attempt: Attempt) -> datetime | None:
    return attempt.created or attempt.scheduled or attempt.started


def _end(attempt: Attempt, now: datetime) -> datetime:
    begin = _begin(attempt)
    assert begin
    end = attempt.finished or (now if attempt.state in UNDER_WAY else attempt.started or begin)
    return max(attempt.started or begin, end)  # the clock of a cluster may be ahead


def _bar(attempt: Attempt, x: Callable[[datetime], float], top: int, now: datetime) -> str:
    """The phases of an attempt; its title tells what the colours do."""
    end, created = _end(attempt, now), attempt.created or attempt.scheduled or attempt.started
    scheduled = attempt.scheduled or attempt.started
    phases = (
        ("waits", created, scheduled or end),
        ("prepares", scheduled, attempt.started or end),
        (attempt.state.lower().replace(" ", "-"), attempt.started, end),
    )
    bars = "".join(
        f'<rect class="{kind}" x="{x(begin):.1f}" y="{top}" '
        f'width="{max(2.0, x(to) - x(begin)):.1f}" height="15" rx="3"/>'
        for kind, begin, to in phases
        if begin and to and to >= begin
    )
    began = f"; began {times.moment(created)} {times.zone()}"
    return f"<g><title>{escape(_title(attempt, now))}{began}</title>{bars}</g>"


def _title(attempt: Attempt, now: datetime) -> str:
    parts = [f"{attempt.task}, attempt {attempt.number}: {attempt.state}"]
    if attempt.started:
        parts.append(f"ran {duration(max(0.0, (_end(attempt, now) - attempt.started).total_seconds()))}")
    if attempt.exit_code is not None:
        parts.append(f"exit code {attempt.exit_code}")
    return "; ".join([*parts, *filter(None, (attempt.reason,))])
