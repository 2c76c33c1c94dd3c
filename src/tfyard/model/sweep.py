"""A sweep: one job, run many times with other values. What it searches, and what is known of its trials."""

from collections.abc import Sequence
from datetime import datetime
from math import prod
from typing import Literal

from msgspec import Struct

from .names import MAX_LABEL

Value = int | float | bool | str
Values = dict[str, Value]
Sampler = Literal["grid", "random", "tpe"]
Prune = Literal["none", "median", "asha"]
TrialState = Literal["Planned", "Running", "Pruning", "Succeeded", "Failed", "Pruned", "Stopped"]
SweepPhase = Literal["Running", "Succeeded", "Failed", "Stopped"]

TRIAL_DONE: tuple[TrialState, ...] = ("Succeeded", "Failed", "Pruned")
"""States of trials that do not run again."""
TRIAL_ACTIVE: tuple[TrialState, ...] = ("Planned", "Running", "Pruning")
"""States of trials that run, or are about to: they hold a place of `parallel`."""
DIGITS_OF_VALUE = 6
SHOWN = 40
"""Letters of a text that are shown among other values."""
NARROW = 1000
"""If the ends of a range are more than this many times its width, six digits cannot distinguish its values."""
DIGITS = 3
LAST_TRIAL = f"-{'9' * DIGITS}"


class Range(Struct, frozen=True, tag="range"):
    """All numbers from `low` to `high`, both included."""

    low: float
    high: float
    is_log: bool = False
    is_int: bool = False

    def of(self, number: float) -> Value:
        """The number as a value of this range, as short as people write it: the program, the record and the search
        have the same one."""
        if self.is_int:
            return round(min(max(number, self.low), self.high))
        is_narrow = max(abs(self.low), abs(self.high)) > NARROW * (self.high - self.low)
        short = number if is_narrow else float(f"{number:.{DIGITS_OF_VALUE}g}")
        return float(min(max(short, self.low), self.high))


class Choice(Struct, frozen=True, tag="choice"):
    values: tuple[Value, ...]


Parameter = Range | Choice


class Objective(Struct, frozen=True):
    """The metric that decides which trial is best, as in `max auc` or `min best loss`."""

    metric: str
    is_max: bool
    is_best: bool = False
    """The best value of a trial counts, instead of its last."""

    @property
    def sign(self) -> int:
        """What a value is multiplied with, so that more is better."""
        return 1 if self.is_max else -1

    def __str__(self) -> str:
        return f"{'max' if self.is_max else 'min'} {'best ' if self.is_best else ''}{self.metric}"


class SweepSpec(Struct, frozen=True, kw_only=True):
    name: str
    over: dict[str, Parameter]
    objective: Objective
    trials: int
    parallel: int | None = None
    """Trials at once; None: as many as fit."""
    sampler: Sampler = "random"
    prune: Prune = "none"
    seed: int | None = None
    deadline: int | None = None
    """Seconds for the whole sweep."""
    retry_trials: int = 0
    service_account: str = ""
    """ServiceAccount of the driver on a cluster; empty: the chart's."""


class TrialOf(Struct, frozen=True, kw_only=True):
    """What makes a job a trial: kept in the record of the run."""

    sweep: str
    number: int
    values: Values
    attempt: int = 1


class Trial(Struct, frozen=True, kw_only=True):
    """One point of the search. An attempt that failed by its own fault, or was cut off, may be followed by one
    more with the same values."""

    number: int
    values: Values
    state: TrialState = "Planned"
    objective: float | None = None
    at: int | None = None
    """Step of the objective's value."""
    curve: tuple[tuple[int, float], ...] = ()
    """The objective's metric by step, thinned out: pruning compares trials by it."""
    attempt: int = 1
    failures: int = 0
    message: str = ""
    job: str = ""
    """Name of the run, or of the TFJob; empty: not started yet."""
    started: datetime | None = None
    ended: datetime | None = None


class SweepState(Struct, frozen=True, kw_only=True):
    """All that a driver must know to go on; the search is rebuilt from it."""

    spec: SweepSpec
    created: datetime
    due: datetime | None = None
    """When the deadline is over; the time in which the sweep was stopped does not count."""
    phase: SweepPhase = "Running"
    message: str = ""
    ended: datetime | None = None
    trials: tuple[Trial, ...] = ()

    def count(self, *states: TrialState) -> int:
        return sum(trial.state in states for trial in self.trials)

    @property
    def best(self) -> Trial | None:
        """The best trial that was not pruned: a pruned one was judged by a part of its training."""
        judged = [
            trial for trial in self.trials if trial.state == "Succeeded" and trial.objective is not None
        ]
        sign = self.spec.objective.sign
        return max(judged, key=lambda trial: (sign * (trial.objective or 0.0), -trial.number), default=None)


def trial_name(sweep: str, number: int, attempt: int = 1) -> str:
    """The name of a trial's job. On a cluster, later attempts have names of their own."""
    return f"{sweep}-{number:0{DIGITS}d}" + (f"-{attempt}" if attempt > 1 else "")


def variable_of(parameter: str) -> str:
    """The environment variable of a parameter that the job does not name."""
    return parameter.upper()


def longest_name(pod_rest: int) -> int:
    """Characters that a sweep's name may have, if a pod's name adds so many to the name of its job."""
    return MAX_LABEL - pod_rest - len(LAST_TRIAL)


def value_text(value: Value) -> str:
    """The value as programs are given it, with all its digits."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def short_text(value: Value) -> str:
    """The value as it is shown among others: short, and in one line."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(value_text(value).split())
    return (text if len(text) <= SHOWN else f"{text[:SHOWN]}…") or '""'


def values_text(values: Values) -> str:
    return " ".join(f"{name}={short_text(value)}" for name, value in values.items())


def options(parameter: Parameter) -> Sequence[Value] | None:
    """All values of a parameter; None: they cannot be counted."""
    if isinstance(parameter, Choice):
        return parameter.values
    return range(int(parameter.low), int(parameter.high) + 1) if _is_countable(parameter) else None


def grid_size(over: dict[str, Parameter]) -> int | None:
    """Number of all combinations; None: a range has no end of them."""
    sizes = [_size(parameter) for parameter in over.values()]
    return None if None in sizes else prod(size for size in sizes if size is not None)


def _size(parameter: Parameter) -> int | None:
    if isinstance(parameter, Choice):
        return len(parameter.values)
    return int(parameter.high) - int(parameter.low) + 1 if _is_countable(parameter) else None


def _is_countable(parameter: Range) -> bool:
    return parameter.is_int and not parameter.is_log
