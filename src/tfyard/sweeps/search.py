"""Chooses the values that a sweep tries next."""

import random
import sys
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import Protocol

from tfyard.extras import needs
from tfyard.model.sweep import (
    Choice,
    Parameter,
    SweepSpec,
    SweepState,
    Trial,
    Value,
    Values,
    grid_size,
    options,
)

FEWEST_FOR_IMPORTANCES = 8
"""Trials that must have succeeded before anything is said about the parameters."""


class ValueSearch(Protocol):
    """Chooses the values of trials. It can be built again from the trials at any time, and goes on as before."""

    def learn(self, _: Sequence[Trial]) -> None:
        """Learn from all trials, whenever one of them has changed."""
        return

    def values(self, number: int, trials: Sequence[Trial]) -> Values:
        """The values of trial `number`; `trials` are those before it."""


def search(spec: SweepSpec, journal: Path | None = None) -> ValueSearch:
    """`journal`: file that optuna-dashboard opens, if Optuna searches."""
    if spec.sampler == "grid":
        return Grid(spec)
    if spec.sampler == "random":
        return Random(spec)
    with needs("sweep", "`sampler: random` works as it is; the sampler tpe"):
        from .optuna_search import OptunaSearch  # 400 ms
    return OptunaSearch(spec, journal)


def importances(state: SweepState) -> dict[str, float]:
    """How much each parameter decides about the objective, from 0 to 1; empty: too few trials tell, or Optuna is
    not installed."""
    if len(state.spec.over) < 2 or state.count("Succeeded") < FEWEST_FOR_IMPORTANCES:
        return {}
    try:
        from . import optuna_search  # Optuna may not be installed
    except ImportError:
        return {}
    return optuna_search.importances(state.spec, state.trials)


class Grid(ValueSearch):
    """Every combination, the last parameter changing fastest; with a seed, in a random order."""

    def __init__(self, spec: SweepSpec) -> None:
        self._lists = {name: options(parameter) or () for name, parameter in spec.over.items()}
        self._size = grid_size(spec.over) or 1
        self._order: Sequence[int] | None = None
        if spec.seed is not None:
            self._order = _distinct(self._size, min(self._size, spec.trials), random.Random(spec.seed))

    def values(self, number: int, _: Sequence[Trial]) -> Values:
        at = (number - 1) % self._size
        rest = at if self._order is None else self._order[at]
        chosen: Values = {}
        for name, values in reversed(self._lists.items()):
            rest, at = divmod(rest, len(values))
            chosen[name] = values[at]
        return {name: chosen[name] for name in self._lists}


def _distinct(size: int, count: int, source: random.Random) -> Sequence[int]:
    """`count` different numbers below `size`."""
    if size <= sys.maxsize:
        return source.sample(range(size), count)
    return [source.randrange(size) for _ in range(count)]  # twice the same one does not happen


class Random(ValueSearch):
    def __init__(self, spec: SweepSpec) -> None:
        self._over = spec.over
        self._seed = spec.seed if spec.seed is not None else random.getrandbits(32)

    def values(self, number: int, _: Sequence[Trial]) -> Values:
        own = random.Random(f"{self._seed}:{number}")
        return {name: _drawn(parameter, own) for name, parameter in self._over.items()}


def _drawn(parameter: Parameter, source: random.Random) -> Value:
    if isinstance(parameter, Choice):
        return source.choice(parameter.values)
    if parameter.is_log:
        return parameter.of(exp(source.uniform(log(parameter.low), log(parameter.high))))
    if parameter.is_int:
        return source.randint(int(parameter.low), int(parameter.high))
    return parameter.of(source.uniform(parameter.low, parameter.high))
