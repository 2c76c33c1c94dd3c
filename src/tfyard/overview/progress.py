"""Progress of the training, from the metrics that its tasks report."""

import math
import re
from collections import deque

from tfyard.model import Job, tensorflow_container
from tfyard.model.run_events import Metric
from tfyard.overview.curves import Curve
from tfyard.overview.wording import number
from tfyard.planner.leaders import LEADING_ROLES

KEPT_POINTS = 2_000
RATE_WINDOW = 30.0
LEADING = tuple(role.lower() for role in LEADING_ROLES)
_STEPS = r"--?(?:max[_-]|train[_-]|num[_-])?steps[= ](\d+)"


class Progress:
    """Progress by the metrics of all tasks; the step is the furthest that one of them reports."""

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self.step: int | None = None
        self.epoch: int | None = None
        self.epochs: int | None = None
        self._values: dict[str, dict[str, float]] = {}
        """Task -> its last metrics."""
        self._leader: str | None = None
        self._by_epoch: set[str] = set()
        """Tasks that count epochs: their steps start again in each of them, so their curves are per epoch."""
        self.history: dict[tuple[str, str], list[tuple[int, float]]] = {}
        """(task, metric) -> its curve."""
        self._recent: deque[tuple[float, int]] = deque()

    def note(self, metric: Metric, at: float) -> None:
        """`at`: seconds on any clock."""
        self._values.setdefault(metric.task, {}).update(metric.values)
        if metric.step is not None or metric.epoch is not None:
            self._note_position(metric, at)
        if metric.unfinished:
            return
        if metric.epoch is not None:
            if metric.task not in self._by_epoch:
                self._forget_curves(metric.task)
            self._by_epoch.add(metric.task)
            self._add(metric, metric.epoch)
        elif metric.step is not None and metric.task not in self._by_epoch:
            self._add(metric, metric.step)

    def _note_position(self, metric: Metric, at: float) -> None:
        """Moves to a metric's step and epoch. Progress bars restart in each epoch: the leading task's counts."""
        is_leading = self._leader is None or _rank(metric.task) <= _rank(self._leader)
        self._leader = metric.task if is_leading else self._leader
        here, furthest = ((metric.epoch or 0, metric.step or 0), (self.epoch or 0, self.step or 0))
        starts_again = metric.total is not None or metric.epoch is not None
        if here < furthest and not (starts_again and is_leading):
            return
        if metric.total or (metric.epoch is not None and metric.step is not None):
            self.total = metric.total
        self.step = metric.step or 0
        if metric.epoch is not None:
            self.epoch, self.epochs = metric.epoch, metric.epochs
        if metric.step is not None:
            self._remember(metric.step, at)

    def _forget_curves(self, task: str) -> None:
        """Drops a task's curves by steps from before its first epoch, such as a first evaluation."""
        for curve in [curve for curve in self.history if curve[0] == task]:
            del self.history[curve]

    def _add(self, metric: Metric, x: int) -> None:
        for name, value in metric.values.items():
            points = self.history.setdefault((metric.task, name), [])
            if metric.epoch is not None and points and points[-1][0] == x:
                points.pop()  # reported before the end of the same epoch
            points.append((x, value))
            if len(points) > KEPT_POINTS:
                del points[::2]  # every other one: the shape of the curve stays

    def _remember(self, step: int, at: float) -> None:
        if self._recent and step < self._recent[-1][1]:
            self._recent.clear()  # a new epoch, or a resume from an earlier checkpoint
        self._recent.append((at, step))
        while at - self._recent[0][0] > RATE_WINDOW and len(self._recent) > 2:
            self._recent.popleft()

    @property
    def values(self) -> dict[str, float]:
        """Last value of each metric; if several tasks report it, the leading task's."""
        last: dict[str, float] = {}
        for task in sorted(self._values, key=_rank):
            last |= {name: value for name, value in self._values[task].items() if name not in last}
        return last

    @property
    def rate(self) -> float | None:
        """Steps per second, over the last RATE_WINDOW seconds."""
        if len(self._recent) < 2:
            return None
        (first, start), (last, end) = self._recent[0], self._recent[-1]
        return (end - start) / (last - first) if last > first and end > start else None

    @property
    def seconds_left(self) -> float | None:
        rate = self.rate
        if rate is None or self.total is None or self.step is None:
            return None
        epochs = max(0, (self.epochs or 0) - (self.epoch or 0))
        return max(0, self.total - self.step + epochs * self.total) / rate

    def position(self) -> str:
        """Epoch and step, as far as the program counts them."""
        if self.epoch is None:
            return f"step {self._step()}"
        epoch = f"epoch {self.epoch}/{self.epochs}" if self.epochs else f"epoch {self.epoch}"
        return f"{epoch}, step {self._step()}" if self.step or self.total else epoch

    def _step(self) -> str:
        if not self.total:
            return f"{self.step or 0:,}"
        return f"{min(self.step or 0, self.total):,}/{self.total:,}"

    def metrics(self, most: int | None = None) -> str:
        """The last metrics in words, losses first: a narrow terminal cuts off the end."""
        values = sorted(self.values.items(), key=lambda pair: "loss" not in pair[0])
        return "  ".join(f"{name} {number(value)}" for name, value in values[:most])

    def loss(self) -> Curve | None:
        """The curve to plot: the leading task's loss if there is one, else its first metric."""
        best = min(self.history, key=_curve_rank, default=None)
        if best is None:
            return None
        task, metric = best
        return Curve(f"{metric} {task}", "epoch" if task in self._by_epoch else "step", self.history[best])


def _curve_rank(curve: tuple[str, str]) -> tuple[object, ...]:
    task, metric = curve
    return "loss" not in metric and "entropy" not in metric, _rank(task), metric


def _rank(task: str) -> tuple[int, float, str]:
    """Sort key of a task: the chief first, else the first worker."""
    role, _, index = task.partition("-")
    rank = LEADING.index(role) if role in LEADING else len(LEADING)
    return rank, int(index) if index.isdigit() else math.inf, task


def total_steps(job: Job) -> int | None:
    """Number of steps in the program's command line; None if it has none."""
    for role in job.roles:
        container = tensorflow_container(role.template)
        line = " ".join(str(p) for p in [*(container.get("command") or []), *(container.get("args") or [])])
        if "steps" in line and (match := re.search(_STEPS, line)):
            return int(match[1])
    return None
