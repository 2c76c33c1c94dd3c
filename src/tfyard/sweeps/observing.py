"""What the job of a trial says of it: its phase, and the objective's metric in its log."""

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from math import isfinite
from typing import Literal

from msgspec import Struct

from tfyard.model.summary import JobSummary
from tfyard.model.sweep import Objective
from tfyard.overview.metrics import Point

CURVE = 24
"""Points of a curve that are kept: a thousand trials must fit into a ConfigMap."""


SeenPhase = Literal["Running", "Succeeded", "Failed", "Stopped", "Cut"]


class TrialSeen(Struct, frozen=True, kw_only=True):
    job: str
    """Name of the trial's job, or of its run."""
    attempt: int
    phase: SeenPhase
    """Stopped: by a person, or because it was pruned. Cut: its program was interrupted or killed with tfyard."""
    message: str = ""
    started: datetime | None = None
    ended: datetime | None = None
    curve: tuple[tuple[int, float], ...] = ()
    """All values of the objective's metric, by step."""
    lost: str = ""
    """nan or inf, if that is the last value of the objective's metric."""
    metrics: tuple[str, ...] = ()
    """Names of all metrics that it has printed."""


def seen(summary: JobSummary, points: Sequence[Point], objective: Objective, attempt: int) -> TrialSeen:
    status = summary.status
    phase = _PHASES.get(status.phase, "Running")
    last = next((point.values[objective.metric] for point in reversed(_own(points, objective.metric))), 0.0)
    return TrialSeen(
        job=summary.name,
        attempt=attempt,
        phase=phase,
        message=status.failure.message if status.failure else "",
        started=status.start_time or summary.created,
        ended=status.completion_time if phase != "Running" else None,
        curve=curve(points, objective.metric),
        lost="" if isfinite(last) else str(last),
        metrics=tuple(dict.fromkeys(name for point in points for name in point.values)),
    )


_PHASES: dict[str, SeenPhase] = {
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Stopped": "Stopped",
    "Interrupted": "Cut",
    "Killed": "Cut",
}


def curve(points: Sequence[Point], metric: str) -> tuple[tuple[int, float], ...]:
    """The metric by epoch, else by step, of the first task that prints it. A program that names neither is counted
    by its lines; a line that names neither, such as a last evaluation, belongs to what was before it."""
    own = _own(points, metric)
    by_place = {place: point.values[metric] for place, point in zip(_places(own), own, strict=True)}
    return tuple(sorted((place, value) for place, value in by_place.items() if isfinite(value)))


def _own(points: Sequence[Point], metric: str) -> list[Point]:
    """The points of the first task that prints the metric."""
    points_with_metric = [point for point in points if metric in point.values]
    return [point for point in points_with_metric if point.task == points_with_metric[0].task]


def _places(points: Sequence[Point]) -> list[int]:
    """Steps start again in each epoch, so epochs count where there are some."""
    named = [point.epoch for point in points]
    if not any(place is not None for place in named):
        named = [point.step for point in points]
    if not any(place is not None for place in named):
        return list(range(1, len(points) + 1))
    return list(accumulate(named, lambda before, here: before if here is None else here, initial=0))[1:]


def judged(points: tuple[tuple[int, float], ...], objective: Objective) -> tuple[int, float] | None:
    """The step and the value that count: the last, or the best."""
    if not points:
        return None
    return max(points, key=lambda point: objective.sign * point[1]) if objective.is_best else points[-1]


def thinned(points: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    """A curve with at most CURVE points: the first, the last and some between them."""
    if len(points) <= CURVE:
        return points
    chosen = {round(at * (len(points) - 1) / (CURVE - 1)) for at in range(CURVE)}
    return tuple(points[at] for at in sorted(chosen))
