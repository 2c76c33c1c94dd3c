"""The loop of a sweep: look at the jobs, decide, store the state, act. Killed at any moment, the next driver goes
on from the stored state: no trial is started twice, and none is forgotten."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

from msgspec.structs import replace

from tfyard.errors import NotPossible, TfyardError
from tfyard.model.sweep import SweepState, Trial

from .decide import decide, stopped
from .observing import TrialSeen
from .search import ValueSearch


class CannotGoOn(TfyardError):
    """The driver ends. What it has stored lets another one go on."""


class DrivenElsewhere(CannotGoOn):
    """Another process drives the sweep."""


class Trials(Protocol):
    """The jobs of a sweep and its stored state, in one of the places where jobs run."""

    parallel: int
    look_every: float

    def save(self, state: SweepState) -> None:
        """Raises DrivenElsewhere if another driver has stored a state since."""

    def look(self, state: SweepState) -> Mapping[int, TrialSeen]:
        """The jobs of the present attempts, by number of the trial."""

    def start(self, trial: Trial) -> None:
        """Starts the trial's job; one that exists is left as it is. A TfyardError that is not CannotGoOn is the
        trial's failure."""

    def is_asked_to_stop(self) -> bool:
        """Whether a person has stopped the whole sweep."""

    def stop(self, trial: Trial) -> None:
        """Asks the trial's job to stop."""


Watch = Callable[[SweepState], None]


class Drive(Protocol):
    """A sweep that this process is about to drive."""

    name: str
    where: str
    """Where the sweep and its trials are, in words."""
    removed: tuple[str, ...]
    """Names of old sweeps that were removed for it."""
    state: SweepState
    parallel: int
    stops_trials: bool
    """Whether the trials end with this process, so that a person may want them to end at once."""
    left: str
    """What has become of the sweep when a person has ended this process."""

    def run(self, watch: Watch) -> SweepState:
        """Returns at the end of the sweep."""


class Driver:
    def __init__(self, state: SweepState, trials: Trials, search: ValueSearch, watch: Watch) -> None:
        self.state = state
        self._trials, self._search, self._watch = trials, search, watch
        self._asked = set[tuple[int, int]]()
        """Number and attempt of the trials that were asked to stop."""

    def run(self) -> SweepState:
        """Drives the sweep to its end."""
        while self.state.phase == "Running":
            self.step(datetime.now(UTC))
            if self._trials.is_asked_to_stop():
                self.interrupt("it was stopped by `tfyard stop`")
            elif self.state.phase == "Running":
                time.sleep(self._trials.look_every)
        return self.state

    def step(self, now: datetime) -> None:
        plan = decide(self.state, self._trials.look(self.state), self._search, self._trials.parallel, now)
        self._store(plan.state)
        for trial in plan.stop:
            self._stop(trial)
        for trial in plan.start:
            self._start(trial, now)

    def interrupt(self, message: str) -> None:
        """Ends the sweep so that it can be resumed."""
        seen = self._trials.look(self.state)
        running = [number for number, each in seen.items() if each.phase == "Running"]
        named = (
            replace(trial, job=seen[trial.number].job) if trial.number in seen else trial
            for trial in self.state.trials
        )  # a trial that has a job runs again as its next attempt
        self._store(stopped(replace(self.state, trials=tuple(named)), datetime.now(UTC), message))
        for trial in self.state.trials:
            if trial.number in running:
                self._stop(trial)

    def _store(self, state: SweepState) -> None:
        if state != self.state:
            self._trials.save(state)
            self.state = state
            self._search.learn(state.trials)
            self._watch(state)

    def _stop(self, trial: Trial) -> None:
        if (trial.number, trial.attempt) not in self._asked:
            self._asked.add((trial.number, trial.attempt))
            with suppress(NotPossible):  # it has ended meanwhile
                self._trials.stop(trial)

    def _start(self, trial: Trial, now: datetime) -> None:
        try:
            self._trials.start(trial)
        except CannotGoOn:
            raise
        except TfyardError as error:
            failed = replace(trial, state="Failed", message=str(error), ended=now)
            others = (failed if each.number == trial.number else each for each in self.state.trials)
            self._store(replace(self.state, trials=tuple(others)))
