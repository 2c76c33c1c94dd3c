"""What is counted, in Prometheus' text format. By hand: the format is a page long, a client library is not.

Upstream's names stay as they are, since dashboards and alerts ask for them; what only tfyard has begins with
`tfyard_`. Everything is touched from the event loop alone, so nothing here takes a lock.
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metric(ABC):
    """One family of samples. Without labels its only sample is there from the start, so that a rate over it
    has a beginning."""

    type = "untyped"

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)

    def render(self) -> Iterator[str]:
        yield f"# HELP {self.name} {_escape(self.help)}"
        yield f"# TYPE {self.name} {self.type}"
        yield from self.samples()

    @abstractmethod
    def samples(self) -> Iterator[str]: ...

    def _check(self, values: Labels) -> None:
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {len(values)} values")


class _Values(Metric):
    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def value(self, *labels: str) -> float:
        return self._values.get(labels, 0.0)

    def samples(self) -> Iterator[str]:
        for values, value in sorted(self._values.items()):
            yield _sample(self.name, zip(self.labels, values, strict=True), value)


class Counter(_Values):
    """What only grows; a restart begins at 0 again, which Prometheus knows how to read."""

    type = "counter"

    def inc(self, *labels: str, by: float = 1.0) -> None:
        if by < 0:
            raise ValueError(f"{self.name} is a counter and cannot go down")
        self._check(labels)
        self._values[labels] = self._values.get(labels, 0.0) + by


class Gauge(_Values):
    """What goes up and down."""

    type = "gauge"

    def set(self, value: float, *labels: str) -> None:
        self._check(labels)
        self._values[labels] = value


class Histogram(Metric):
    """How long things take: counts up to each bound, from which Prometheus derives quantiles."""

    type = "histogram"

    def __init__(self, name: str, help: str, bounds: Sequence[float] = SECONDS) -> None:
        super().__init__(name, help)
        self._bounds = (*sorted(bounds), float("inf"))
        self._counts = [0] * len(self._bounds)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> Iterator[str]:
        for bound, count in zip(self._bounds, accumulate(self._counts), strict=True):
            yield _sample(f"{self.name}_bucket", [("le", _number(bound))], count)
        yield _sample(f"{self.name}_sum", (), self._sum)
        yield _sample(f"{self.name}_count", (), sum(self._counts))


class Registry:
    """All metrics of one process, in the order in which they were made known."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def add(self, *metrics: Metric) -> None:
        for metric in metrics:
            if metric.name in self._metrics:
                raise ValueError(f"{metric.name} is there already: a scrape with two of them is refused")
            self._metrics[metric.name] = metric

    def render(self) -> str:
        return "".join(f"{line}\n" for metric in self._metrics.values() for line in metric.render())


def _sample(name: str, labels: Iterable[tuple[str, str]], value: float) -> str:
    inside = ",".join(f'{key}="{_escape(text, quotes=True)}"' for key, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _number(value: float) -> str:
    """As Go reads it: `+Inf`, and whole numbers without a fraction."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value:+}".replace("inf", "Inf")
    return str(int(value)) if value == int(value) else repr(value)


def _escape(text: str, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
