"""Pictures as SVG, drawn here so that they need no script: sparklines, curves with the value under the pointer,
and the timeline of attempts. Colours are classes: the stylesheet knows whether it is dark."""

from collections.abc import Callable, Sequence
from datetime import datetime

from markupsafe import Markup, escape
from msgspec import Struct

from tfyard.overview.attempts import UNDER_WAY, Attempt
from tfyard.overview.curves import CurveBox, Points, finite, polyline, scaled
from tfyard.overview.progress import Progress
from tfyard.overview.wording import duration, number

SPARK = CurveBox(2, 3, 92, 18)
CHART = CurveBox(56, 12, 560, 150)
CHART_WIDTH, CHART_HEIGHT = 640, 190
MOST_POINTS = 160
"""Points of a curve that answer to the pointer; more would be narrower than it."""
TIMELINE_WIDTH, LABELS, ROW = 1180, 120, 22


def sparkline(progress: Progress | None) -> Markup:
    curve = progress.loss() if progress else None
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


def charts(progress: Progress | None) -> list[Chart]:
    """One picture for each metric, with a curve for each task that reports it."""
    curves: dict[str, dict[str, Points]] = {}
    for (task, metric), points in (progress.history if progress else {}).items():
        if len(known := finite(points)) > 1:
            curves.setdefault(metric, {})[task] = thinned(known)
    unit = (progress.loss() or None) if progress else None
    return [_chart(metric, tasks, unit.unit if unit else "step") for metric, tasks in curves.items()]


def thinned(points: Points) -> list[tuple[float, float]]:
    every = -(-len(points) // MOST_POINTS)
    return [*points[:-1:every], points[-1]] if every > 1 else list(points)


def _chart(metric: str, tasks: dict[str, Points], unit: str) -> Chart:
    everything = [point for points in tasks.values() for point in points]
    lows = [min(each) for each in zip(*everything, strict=True)]
    highs = [max(each) for each in zip(*everything, strict=True)]
    corners = [(lows[0], lows[1]), (highs[0], highs[1])]
    parts = [_frame(corners, unit)]
    for turn, points in enumerate(tasks.values()):
        there = scaled([*corners, *points], CHART)[2:]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in there)
        parts.append(f'<polyline class="c{turn % 6}" points="{drawn}"/>')
    for turn, (task, points) in enumerate(tasks.items()):
        parts += _marks(task if len(tasks) > 1 else "", points, scaled([*corners, *points], CHART)[2:], turn)
    label = f"{metric} over {unit}s, from {number(lows[1])} to {number(highs[1])}"
    size = f'viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}"'
    svg = f'<svg class="chart" {size} role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    last = ", ".join(
        f"{task} {number(points[-1][1])}" if len(tasks) > 1 else number(points[-1][1])
        for task, points in tasks.items()
    )
    return Chart(metric, last, Markup(svg))


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
        f'<g class="axes">{lines}<text x="{CHART.left}" y="{bottom + 20}">{left:g}</text>'
        f'<text x="{end}" y="{bottom + 20}" text-anchor="end">{escape(unit)} {right:g}</text></g>'
    )


def _marks(task: str, points: Points, there: Points, turn: int) -> list[str]:
    """For each point, an invisible column that shows its value while the pointer is over it."""
    marks = []
    for at, ((x, value), (px, py)) in enumerate(zip(points, there, strict=True)):
        before = there[at - 1][0] if at else CHART.left
        after = there[at + 1][0] if at + 1 < len(there) else CHART.left + CHART.width
        left, right = (before + px) / 2, (px + after) / 2
        text = f"{task} {x:g}: {number(value)}".lstrip()
        anchor = "end" if px > CHART.left + CHART.width * 0.8 else "start"
        shift = -8 if anchor == "end" else 8
        marks.append(
            f'<g class="mark"><rect x="{left:.1f}" y="{CHART.top}" width="{max(1, right - left):.1f}" '
            f'height="{CHART.height}"/><circle class="c{turn % 6}" cx="{px:.1f}" cy="{py:.1f}" r="3.5"/>'
            f'<text x="{px + shift:.1f}" y="{max(CHART.top + 10, py - 8):.1f}" text-anchor="{anchor}">'
            f"{escape(text)}</text></g>"
        )
    return marks


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
    parts.append(f'<text x="{LABELS}" y="{bottom}">{first:%H:%M:%S}</text>')
    parts.append(
        f'<text x="{TIMELINE_WIDTH - 6}" y="{bottom}" text-anchor="end">'
        f"{last:%H:%M:%S} UTC, {duration(seconds)}</text>"
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
    return attempt.finished or (now if attempt.state in UNDER_WAY else attempt.started or begin)


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
    return f"<g><title>{escape(title(attempt, now))}</title>{bars}</g>"


def title(attempt: Attempt, now: datetime) -> str:
    number_ = f"{attempt.attempt}.{attempt.restart}" if attempt.restart else str(attempt.attempt)
    parts = [f"{attempt.task}, attempt {number_}: {attempt.state}"]
    if attempt.started:
        parts.append(f"ran {duration(max(0.0, (_end(attempt, now) - attempt.started).total_seconds()))}")
    if attempt.exit_code is not None:
        parts.append(f"exit code {attempt.exit_code}")
    return "; ".join([*parts, *filter(None, (attempt.reason,))])
