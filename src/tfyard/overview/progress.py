"""How far the training is, from the metrics that its tasks report."""

import math
import time
from collections import deque

from tfyard.model.run_events import Ended, Metric

KEPT_POINTS = 2_000
RATE_WINDOW = 30.0
LEADING = ("chief", "master", "worker")


class Progress:
    """How far the training is, from the metrics of whoever reports the furthest step."""

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self.step: int | None = None
        self._values: dict[str, dict[str, float]] = {}
        """Task -> what it said last."""
        self.history: dict[tuple[str, str], list[tuple[int, float]]] = {}
        """(task, metric) -> its curve."""
        self._recent: deque[tuple[float, int]] = deque()

    def note(self, metric: Metric) -> None:
        self._values.setdefault(metric.task, {}).update(metric.values)
        self.total = metric.total or self.total
        if metric.step is None:
            return
        if self.step is None or metric.step >= self.step or metric.total:
            self.step = metric.step
            self._remember(metric.step)
        for name, value in metric.values.items():
            points = self.history.setdefault((metric.task, name), [])
            points.append((metric.step, value))
            if len(points) > KEPT_POINTS:
                del points[::2]  # thin out evenly: the shape of the curve stays

    def _remember(self, step: int) -> None:
        now = time.monotonic()
        if self._recent and step < self._recent[-1][1]:
            self._recent.clear()  # a new epoch, or a resume from an earlier checkpoint
        self._recent.append((now, step))
        while now - self._recent[0][0] > RATE_WINDOW and len(self._recent) > 2:
            self._recent.popleft()

    @property
    def values(self) -> dict[str, float]:
        """The last ones; of those that several tasks report, the leading task's."""
        found: dict[str, float] = {}
        for task in sorted(self._values, key=_rank):
            found |= {name: value for name, value in self._values[task].items() if name not in found}
        return found

    @property
    def rate(self) -> float | None:
        """Steps per second, lately."""
        if len(self._recent) < 2:
            return None
        (first, start), (last, end) = self._recent[0], self._recent[-1]
        return (end - start) / (last - first) if last > first and end > start else None

    @property
    def seconds_left(self) -> float | None:
        rate = self.rate
        if rate is None or self.total is None or self.step is None:
            return None
        return max(0, self.total - self.step) / rate

    def loss(self) -> tuple[str, list[tuple[int, float]]] | None:
        """The curve to plot: the leading task's loss if there is one, else its first metric."""
        best = min(self.history, key=_curve_rank, default=None)
        return (" ".join(reversed(best)), self.history[best]) if best else None


def _curve_rank(curve: tuple[str, str]) -> tuple[object, ...]:
    task, metric = curve
    return "loss" not in metric and "entropy" not in metric, _rank(task), metric


def _rank(task: str) -> tuple[int, float, str]:
    """Who speaks for the training: the chief, else the first worker."""
    role, _, index = task.partition("-")
    place = LEADING.index(role) if role in LEADING else len(LEADING)
    return place, int(index) if index.isdigit() else math.inf, task


def ending(ended: Ended) -> str:
    if ended.stopped:
        return f"stopped: {ended.stopped}"
    return f"ended with code {ended.code}" + (" (OOMKilled)" if ended.reason == "OOMKilled" else "")


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit in ("B", "KB", "MB") else f"{count:.1f} {unit}"
        count /= 1000
    return ""


def number(value: float) -> str:
    return f"{value:.4g}"
