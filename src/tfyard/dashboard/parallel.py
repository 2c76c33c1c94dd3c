"""The trials of a sweep as parallel coordinates: an axis for each parameter and one for the objective, a line for
each trial. Drawn as SVG here, so that it needs no script."""

from collections.abc import Sequence
from math import log

from markupsafe import Markup, escape
from msgspec import Struct

from tfyard.model.sweep import (
    Choice,
    Parameter,
    SweepState,
    Trial,
    Value,
    short_text,
    trial_name,
    values_text,
)
from tfyard.overview import sweep_text
from tfyard.overview.cause import cut
from tfyard.overview.wording import number

WIDTH, HEIGHT, SIDE, TOP, BOTTOM = 760, 260, 70, 34, 18
SHADES = 5
"""Colours of lines, from the worst fifth of the trials to the best."""
MOST_LINES = 300
MOST_TICKS, TITLE = 8, 24
"""Values that are written at an axis, and characters of its title."""


class Axis(Struct, frozen=True):
    title: str
    parameter: Parameter | None
    """None: the objective."""
    low: float = 0.0
    high: float = 1.0

    def share(self, value: Value) -> float:
        """How far up the axis a value is, from 0 to 1."""
        if isinstance(self.parameter, Choice):
            at = next((at for at, each in enumerate(self.parameter.values) if _same(each, value)), 0)
            return at / max(1, len(self.parameter.values) - 1)
        if isinstance(value, str):
            return 0.0
        low, high, here = self.low, self.high, float(value)
        if self.parameter is not None and self.parameter.is_log and min(low, high, here) > 0:
            low, high, here = log(low), log(high), log(here)
        return (here - low) / ((high - low) or 1.0)

    def ticks(self) -> list[tuple[float, str]]:
        if isinstance(self.parameter, Choice):
            values = self.parameter.values[:MOST_TICKS]
            return [(self.share(value), short_text(value)) for value in values]
        return [(0.0, number(self.low)), (1.0, number(self.high))]


def _same(one: Value, other: Value) -> bool:
    """Whether two values are one and the same: 1 and True are not."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def drawn(state: SweepState) -> Markup:
    """Trials that have a value of the objective; empty if fewer than two have one."""
    judged = [trial for trial in sweep_text.ranked(state) if trial.objective is not None][:MOST_LINES]
    if len(judged) < 2:
        return Markup()
    axes = _axes(state, judged)
    best, lines = state.best, []
    for rank, trial in enumerate(judged):
        shade = f"s{SHADES - 1 - rank * SHADES // len(judged)}"
        lines.append(_line(state, trial, axes, f"{shade} best" if trial is best else shade))
    label = f"{len(judged)} trials by {', '.join(axis.title for axis in axes)}; the table below has the same"
    inner = "".join((*reversed(lines), *(_axis(axis, turn, len(axes)) for turn, axis in enumerate(axes))))
    return Markup(
        f'<svg class="parallel" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{inner}</svg>"
    )


def _axes(state: SweepState, judged: Sequence[Trial]) -> list[Axis]:
    axes = [
        Axis(name, each) if isinstance(each, Choice) else Axis(name, each, each.low, each.high)
        for name, each in state.spec.over.items()
    ]
    objectives = [trial.objective or 0.0 for trial in judged]
    return [*axes, Axis(state.spec.objective.metric, None, min(objectives), max(objectives))]


def _x(turn: int, count: int) -> float:
    return SIDE + turn * (WIDTH - 2 * SIDE) / max(1, count - 1)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - min(1.0, max(0.0, share)) * (HEIGHT - TOP - BOTTOM)


def _line(state: SweepState, trial: Trial, axes: Sequence[Axis], classes: str) -> str:
    values = [*(trial.values.get(axis.title, "") for axis in axes[:-1]), trial.objective or 0.0]
    places = [
        (_x(turn, len(axes)), _y(axis.share(value)))
        for turn, (axis, value) in enumerate(zip(axes, values, strict=True))
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    name, value = trial_name(state.spec.name, trial.number), sweep_text.objective(state, trial)
    title = f"{name}: {value}: {values_text(trial.values)}"
    return f'<g class="{classes}"><title>{escape(title)}</title><polyline points="{points}"/></g>'


def _axis(axis: Axis, turn: int, count: int) -> str:
    x, is_last = _x(turn, count), turn == count - 1
    anchor, shift = ("start", 7) if is_last else ("end", -7)
    ticks = "".join(
        f'<text x="{x + shift:.1f}" y="{_y(share) + 4:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
        for share, text in axis.ticks()
    )
    name = escape(cut(axis.title, TITLE))
    title = f'<text class="title" x="{x:.1f}" y="{TOP - 16}" text-anchor="middle">{name}</text>'
    return f'<g class="axis"><line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>{ticks}{title}</g>'
