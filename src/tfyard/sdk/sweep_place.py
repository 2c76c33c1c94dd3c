"""A sweep as the place of one job: what can be asked of the whole, and what only of a trial."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, NoReturn

from msgspec import to_builtins
from msgspec.structs import replace

from tfyard.errors import NoSuchJob, NotPossible, TfyardError
from tfyard.formats import sweepfile
from tfyard.logs.lines import Lines, Remark
from tfyard.model.sweep import SweepState, Trial, trial_name
from tfyard.overview import sweep_answer, sweep_text
from tfyard.overview.metrics import Point
from tfyard.sdk import rows
from tfyard.sdk.place import SpecText

if TYPE_CHECKING:
    from pathlib import Path

    from tfyard.logs.lines import LogEvent, LogSelection
    from tfyard.model import Manifest
    from tfyard.model.summary import JobSummary
    from tfyard.overview.evidence import Evidence
    from tfyard.overview.waiting import WaitResult
    from tfyard.sdk.pages import LocalSide, Page
    from tfyard.sdk.place import HelperOptions, Intent, Listed, Place, RerunOptions

API_VERSION, KIND = "tfyard.dev/v1", "Sweep"


class SweepPlace(ABC):
    """The part that is the same here and on a cluster. A subclass says where the state and the trials are."""

    name: str
    title: str
    namespace, where, events_kept = "", "", ""
    rendered_as: tuple[str, ...] = ()
    look_every = 0.5
    """Seconds between two looks at the state, for those who wait."""

    @abstractmethod
    def sweep(self) -> SweepState:
        """The state. Raises NoSuchJob if the sweep was deleted."""

    @abstractmethod
    def trial_place(self, trial: Trial) -> Place:
        """Raises NoSuchJob if the trial has no job, or it was deleted."""

    @abstractmethod
    def job_file(self) -> str:
        """The job, with the names of the parameters in braces."""

    @abstractmethod
    def stop(self) -> Intent: ...

    @abstractmethod
    def resume(self) -> Intent: ...

    @abstractmethod
    def delete(self) -> Intent: ...

    # --- questions

    def trials(self) -> list[Place]:
        return [place for _, place in self.present(sweep_text.ranked(self.sweep()))]

    def present(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Place]]:
        """Those of the trials that have started, and whose job was not deleted."""
        for trial in trials:
            try:
                place = self.trial_place(trial)
            except NoSuchJob:
                continue
            yield trial, place

    @property
    def folder(self) -> Path | None:
        return None

    def summary(self) -> JobSummary:
        return sweep_text.row(self.name, self.namespace, self.sweep())

    def row(self) -> Listed:
        state = self.sweep()
        return rows.of_sweep(self.title, sweep_text.row(self.name, self.namespace, state), state)

    def manifest(self) -> Manifest:
        state = self.sweep()
        metadata: Manifest = {"name": self.name, "creationTimestamp": to_builtins(state.created)}
        metadata |= {"namespace": self.namespace} if self.namespace else {}
        head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}
        status = {"phase": state.phase, **sweep_answer.status(state)}
        return {**head, "spec": sweepfile.words(replace(state.spec, name=self.name)), "status": status}

    def specs(self) -> list[SpecText]:
        return [SpecText("given", self.job_file())]

    def submitter(self) -> str:
        """The user who submitted its trials: all are started for the same one."""
        started = [trial for trial in self.sweep().trials if trial.job]
        with suppress(NoSuchJob):
            return self.trial_place(started[0]).submitter() if started else ""
        return ""

    def states(self, deadline: float) -> Iterator[JobSummary | None]:
        while True:
            try:
                yield self.summary()
            except NoSuchJob:
                yield None
            if time.monotonic() >= deadline:
                return
            time.sleep(max(0.0, min(self.look_every, deadline - time.monotonic())))

    def tasks(self) -> list[str]:
        """The trials that have a job, as the tasks of the whole."""
        return [trial_label(trial) for trial in self.sweep().trials if trial.job]

    def points(self, tasks: tuple[str, ...]) -> list[Point]:
        """The objective of each trial that has ended, by its number."""
        state = self.sweep()
        judged = [trial for trial in state.trials if trial.objective is not None and trial.ended]
        chosen = [trial for trial in judged if not tasks or trial_label(trial) in tasks]
        metric = state.spec.objective.metric
        return [
            Point(
                at=trial.ended.timestamp() if trial.ended else 0.0,
                task=trial_label(trial),
                step=trial.number,
                values={metric: trial.objective or 0.0},
            )
            for trial in chosen
        ]

    def evidence(self) -> Evidence:
        """The evidence of the trial that says most about the whole: the first that failed, else one that runs."""
        order = ("Failed", "Running", "Planned", "Pruning", "Stopped", "Succeeded", "Pruned")
        first = sorted(self.sweep().trials, key=lambda trial: order.index(trial.state))
        for _, place in self.present(first):
            return place.evidence()
        raise self._nothing_started()

    def missing_permissions(self) -> dict[str, str]:
        return {}

    def logs(self, wanted: LogSelection) -> Iterator[LogEvent]:
        trials = [trial for trial in self.sweep().trials if trial_label(trial) in wanted.tasks]
        for trial, place in self.present(trials):
            own = place.logs(replace(wanted, tasks=tuple(place.tasks())))
            yield from (of_trial(event, trial) for event in own)

    async def follow(self, wanted: LogSelection) -> AsyncIterator[LogEvent | WaitResult | None]:
        from tfyard.sdk.sweep_follow import follow  # 20 ms with asyncio

        async for event in follow(self, wanted):
            yield event

    def tensorboard(
        self, others: Sequence[Place], log_dir: str, helper: HelperOptions, here: LocalSide
    ) -> AbstractAsyncContextManager[list[Page]]:
        """One TensorBoard for all trials that have started."""
        places = [place for _, place in self.present(self.sweep().trials)]
        if not places:
            raise self._nothing_started()
        return places[0].tensorboard([*places[1:], *others], log_dir, helper, here)

    def _nothing_started(self) -> NotPossible:
        return NotPossible(f"{self.name}: none of its trials has started yet, or their jobs were deleted")

    def rerun(self, changes: RerunOptions) -> Intent:
        state = self.sweep()
        if not changes.is_best:
            raise NotPossible(f"{self.name} is a sweep: --best runs its best trial again, for example")
        return self.trial_place(required_best(self.name, state)).rerun(replace(changes, is_best=False))

    def _of_one(self, *_: object, **_options: object) -> NoReturn:
        """The answer to what only a trial can be asked."""
        raise for_one_trial(self.name, self.sweep())

    require_running = code = meter = view = events = job_record = previous = _of_one
    restart = scale = copy = exec_here = exec = stacks = port_forward = notebook = _of_one


def for_one_trial(name: str, state: SweepState) -> NotPossible:
    """The answer to what only a trial can be asked."""
    example = trial_name(state.spec.name, state.best.number if state.best else 1)
    return NotPossible(
        f"{name} is a sweep of {sweep_text.trial_count(state.spec.trials)}: name one of them, as in {example}"
    )


def required_best(name: str, state: SweepState) -> Trial:
    if state.best is None:
        raise TfyardError(f"{name}: no trial has succeeded yet")
    return state.best


def trial_label(trial: Trial) -> str:
    return f"trial-{trial.number}"


def of_trial(event: LogEvent, trial: Trial) -> LogEvent:
    """The event with the trial in front of its task."""
    start = event.start
    if start is None:
        return event
    named = replace(start, task=f"{trial_label(trial)}/{start.task}")
    return replace(event, start=named) if isinstance(event, Lines | Remark) else event
