"""The metrics of a job as MLflow has them. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfyard.overview.metrics import Point, from_row
from tfyard.tracking.payloads import Payload, key

_ONLY = {"evaluator-0": "evaluator"}
"""Tasks that are the only ones of their role."""


class MetricRows:
    """Turns rows of metrics.jsonl into MLflow's metrics. Those of the task that decides keep their names; those of
    the others begin with the task. A program that counts epochs has epochs as its steps, as in its curve."""

    def __init__(self, deciding: str) -> None:
        self._deciding = deciding
        self._steps: dict[str, int] = {}
        """Task -> its last step, which a final result without a step belongs to."""

    def metrics(self, rows: Iterable[Mapping[str, Any]]) -> list[Payload]:
        return [metric for row in rows for metric in self._of(from_row(dict(row)))]

    def _of(self, point: Point) -> Iterator[Payload]:
        step = point.step if point.epoch is None else point.epoch
        if step is not None:
            self._steps[point.task] = step
        prefix = "" if point.task == self._deciding else f"{_ONLY.get(point.task, point.task)}/"
        for name, value in point.values.items():
            yield {
                "key": key(prefix + name),
                "value": _number(value),
                "timestamp": int(point.at * 1000),
                "step": self._steps.get(point.task, 0),
            }


def _number(value: float) -> float | str:
    """The value in JSON for protocol buffers, which spells what is no number as text."""
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
