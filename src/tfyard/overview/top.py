"""Rows of `top`: CPU and memory of each task now, its progress and its speed."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from tfyard.logs.readings import storable
from tfyard.model import Manifest
from tfyard.model.quantity import amount
from tfyard.overview.progress import Progress
from tfyard.overview.wording import duration, number, size

COLUMNS = ("TASK", "STATE", "CPU", "MEMORY", "STEP", "STEP/S", "LOSS", "ETA")


class TaskUse(Struct, frozen=True, kw_only=True):
    task: str
    state: str = ""
    cpu: float | None = None
    """Cores."""
    memory: int | None = None
    """Bytes."""
    progress: Progress | None = None


def row(use: TaskUse) -> tuple[str, ...]:
    """Cells of COLUMNS. Unknown values are empty."""
    cpu = "" if use.cpu is None else f"{use.cpu:.2f}"
    memory = "" if use.memory is None else size(use.memory)
    return (use.task, use.state, cpu, memory, *_progress(use))


def plain(use: TaskUse) -> dict[str, Any]:
    """The use for JSON; memory is in bytes. Unknown values are left out."""
    progress = use.progress or Progress()
    fields = {
        "task": use.task,
        "state": use.state,
        "cpu": use.cpu,
        "memory": use.memory,
        "step": progress.step,
        "stepsPerSecond": progress.rate,
        "secondsLeft": progress.seconds_left,
        "metrics": storable(progress.values) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def pod_use(metrics: Manifest) -> tuple[float, int]:
    """Cores and bytes of a PodMetrics object, its containers together."""
    used = [each.get("usage") or {} for each in metrics.get("containers") or []]
    return float(_sum(each.get("cpu") for each in used)), int(_sum(each.get("memory") for each in used))


def _sum(quantities: Iterable[object]) -> float:
    return float(sum(amount(each) or 0 for each in quantities if each is not None))


def _progress(use: TaskUse) -> tuple[str, ...]:
    progress = use.progress
    if progress is None or (progress.step is None and not progress.values):
        return ("", "", "", "")
    rate, left = progress.rate, progress.seconds_left
    loss = next(
        (value for name, value in progress.values.items() if "loss" in name or "entropy" in name), None
    )
    position = progress.position().replace("step ", "") if progress.step is not None else ""
    return (
        position,
        "" if rate is None or use.state != "Running" else number(rate),
        "" if loss is None else number(loss),
        duration(left) if left is not None and use.state == "Running" else "",
    )
