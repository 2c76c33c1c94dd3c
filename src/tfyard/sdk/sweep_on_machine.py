"""Sweeps on this machine: asked like a job, and driven by the process that asks."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local.run_directory import STATUS, RunDirectory
from tfyard.errors import NoSuchJob, NotPossible
from tfyard.formats.sweepfile.filling import as_trial
from tfyard.local import runs, sweeps
from tfyard.local.commands import Planned, planned
from tfyard.local.prepare import prepare
from tfyard.local.settings import RunOptions
from tfyard.local.sweeps import Slot, SweepFolder, slots
from tfyard.model import Job
from tfyard.model.run_record import RunRecord
from tfyard.model.sweep import (
    TRIAL_ACTIVE,
    TRIAL_DONE,
    Objective,
    SweepSpec,
    SweepState,
    Trial,
    TrialOf,
    Values,
    trial_name,
)
from tfyard.overview.sweep_notes import notes
from tfyard.overview.why import explain
from tfyard.sdk import starting
from tfyard.sdk.messages import ResumeSweep, StartRun
from tfyard.sdk.on_machine import OnMachine, home, started
from tfyard.sdk.place import Done, Intent, Place, RerunOptions
from tfyard.sdk.sweep_place import SweepPlace, required_best
from tfyard.sweeps.decide import begun, resumed
from tfyard.sweeps.driver import Driver, Watch
from tfyard.sweeps.observing import TrialSeen, seen
from tfyard.sweeps.search import search

STOPS_WITHIN = 0.2
"""Seconds between two looks whether a sweep that was asked to stop has ended."""


class SweepOnMachine(SweepPlace):
    where = OnMachine.where

    def __init__(self, folder: SweepFolder) -> None:
        self._folder = SweepFolder(folder.path.resolve())
        self.name, self.title = folder.name, f"sweep/{folder.name}"

    @property
    def folder(self) -> Path | None:
        return self._folder.path

    def sweep(self) -> SweepState:
        state = self._folder.load()
        if state is None:
            raise NoSuchJob(f"the sweep {self.name} was deleted")
        return self._folder.as_it_is(state)

    def trial_place(self, trial: Trial) -> Place:
        run = RunDirectory(self._folder.home / "runs" / trial.job)
        if not trial.job or run.load() is None:
            raise NoSuchJob(f"trial {trial.number} of {self.name} has no run, or it was deleted")
        return OnMachine(run)

    def job_file(self) -> str:
        return (self._folder.path / "job.yaml").read_text()

    def stop(self) -> Intent:
        if not self._folder.is_driven:
            raise NotPossible(f"{self.name} is not running")
        goes = "its running trials, after their grace period"
        return self._intent("stop", goes, "all trials that have ended; `tfyard resume` goes on", self._stop)

    def _stop(self) -> Done:
        self._folder.ask_to_stop()

        def wait(*_: object) -> Iterator[str]:
            while self._folder.is_driven:
                time.sleep(STOPS_WITHIN)
            yield f"{self.name} stopped"

        return Done(wait=wait, goes_on="its trials end within their grace period", is_waited_for=True)

    def resume(self) -> Intent:
        state = self.sweep()
        if self._folder.is_driven:
            raise NotPossible(f"{self.name} is running; there is nothing to resume")
        if state.phase != "Stopped":
            raise NotPossible(f"{self.name} has ended ({state.phase}), so there is nothing to resume")
        intent = self._intent("resume", "", "", self._resume)
        return replace(intent, foreground=lambda terminal: terminal.drive(partial(continued, self._folder)))

    def _resume(self) -> Done:
        """A process of its own drives the sweep, and ends with this program."""
        starting.start(ResumeSweep(str(self._folder.path)))
        return Done(text=f"{self.name} resumed")

    def delete(self) -> Intent:
        if self._folder.is_driven:
            raise NotPossible(f"{self.name} is running; `tfyard stop {self.name}` stops it")
        goes = "its state, and the records and logs of its trials"
        return self._intent("delete", goes, "their volumes", self._delete)

    def _delete(self) -> Done:
        self._folder.remove()
        return Done(text=f"{self.name} deleted")

    def rerun(self, changes: RerunOptions) -> Intent:
        """The best trial as a run of its own, in the job's own folders instead of those of the trial."""
        if not changes.is_best or changes.is_exact:
            return super().rerun(changes)
        state, asked = self.sweep(), self._folder.run_options()
        asked = replace(
            asked,
            values=required_best(self.name, state).values,
            sets=changes.sets,
            env=(*asked.env, *changes.env),
            name=changes.name or f"{state.spec.name}-best",
        )
        intent = self._intent("rerun the best trial of", "", "", partial(started, StartRun(asked)))
        return replace(
            intent,
            compare=partial(self._compared, asked),
            foreground=lambda terminal: terminal.run(partial(prepare, asked)),
        )

    def _compared(self, asked: RunOptions) -> tuple[str, str]:
        prepared = prepare(asked)
        prepared.ports.release()
        return self.job_file(), formats.dump(prepared.job, "jobfile").text()

    def _intent(self, verb: str, goes: str, stays: str, perform: Callable[[], Done]) -> Intent:
        return Intent(
            name=self.name,
            title=self.name,
            heading=f"{verb} the sweep {self.name}",
            goes=(goes,) if goes else (),
            stays=(stays,) if stays else (),
            perform=perform,
        )


# --- driving


class DriveOnMachine:
    stops_trials = True

    def __init__(
        self, folder: SweepFolder, state: SweepState, places: list[Slot], removed: tuple[str, ...] = ()
    ) -> None:
        self.name, self.where, self.removed = folder.name, str(folder.path), removed
        self.state, self.parallel = state, len(places)
        self.left = f"the sweep was stopped; `tfyard resume {folder.name}` goes on"
        self._folder, self._slots = folder, places
        self.notes: tuple[str, ...] = ()
        """What is said before it starts."""

    def run(self, watch: Watch) -> SweepState:
        with self._folder.driving():
            trials = TrialsOnMachine(self._folder, self.state, self._slots)
            driver = Driver(self.state, trials, search(self.state.spec, self._folder.journal), watch)
            self._folder.save(self.state)
            try:
                return _driven(driver)
            finally:
                starting.stop_all()  # those that could not be asked; after a second Ctrl-C, it kills


def _driven(driver: Driver) -> SweepState:
    """Drives the sweep, and waits for the end of the trials that were asked to stop: their programs may save."""
    try:
        state = driver.run()
    except BaseException:
        driver.interrupt("it was interrupted")
        starting.wait_for_all()
        raise
    starting.wait_for_all()
    return state


def new(spec: SweepSpec, asked: RunOptions, now: datetime) -> DriveOnMachine:
    """A new sweep; everything that can be wrong is checked before its folder is made."""
    search(spec)  # Optuna may not be installed
    folder, spec, job = sweeps.make(spec, asked, now, Path(home()), check=partial(_slots, spec, asked))
    state = begun(spec, now)
    folder.save(state)
    driven = DriveOnMachine(folder, state, _slots(spec, asked, job), sweeps.prune(folder.home))
    driven.notes = tuple(notes(spec, job))
    return driven


class RehearsedSweep(Struct, frozen=True, kw_only=True):
    """What a sweep would do."""

    spec: SweepSpec
    parallel: int
    notes: tuple[str, ...]
    values: Values
    """Those of the first trial; if they are chosen by chance, of one that might be the first."""
    first: list[Planned]
    """The processes of the first trial."""


def rehearsed(spec: SweepSpec, asked: RunOptions, now: datetime) -> RehearsedSweep:
    """Check everything that starting the sweep would check, without creating anything."""
    chosen = search(spec)
    spec, prepared = sweeps.checked(spec, asked, partial(_slots, spec, asked))
    values, places = chosen.values(1, ()), _slots(spec, asked, prepared.job)
    of = TrialOf(sweep=sweeps.folder_name(spec, now), number=1, values=values)
    first = replace(as_trial(prepared.job, of), name=trial_name(spec.name, 1))
    with _environment(places[0]):
        processes = planned(replace(prepared, job=first))
    said = tuple(notes(spec, prepared.job))
    return RehearsedSweep(spec=spec, parallel=len(places), notes=said, values=values, first=processes)


def continued(folder: SweepFolder) -> DriveOnMachine:
    state = folder.load()
    if state is None:
        raise NoSuchJob(f"the sweep {folder.name} was deleted")
    (document,) = formats.read((folder.path / "job.yaml").read_bytes())
    asked = folder.run_options()
    return DriveOnMachine(
        folder, resumed(state, datetime.now(UTC)), _slots(state.spec, asked, formats.load(document))
    )


def _slots(spec: SweepSpec, asked: RunOptions, job: Job) -> list[Slot]:
    return slots(job, spec.parallel, sharing=asked.share_gpus)


class TrialsOnMachine:
    look_every = 0.5

    def __init__(self, folder: SweepFolder, state: SweepState, slots: list[Slot]) -> None:
        self._folder, self._spec = folder, state.spec
        self._runs = folder.runs(state.spec)
        self._slots, self._slot_of = slots, dict[int, int]()
        self._known = dict[int, tuple[object, TrialSeen]]()
        self.parallel = len(slots)

    def save(self, state: SweepState) -> None:
        self._folder.save(state)
        active = {trial.number for trial in state.trials if trial.state in TRIAL_ACTIVE}
        self._slot_of = {number: slot for number, slot in self._slot_of.items() if number in active}

    def look(self, state: SweepState) -> Mapping[int, TrialSeen]:
        active = [trial for trial in state.trials if trial.state not in TRIAL_DONE]
        found = {trial.number: self._seen(trial.number) for trial in active if trial.number in self._runs}
        attempts = {trial.number: trial.attempt for trial in active}
        return {number: each for number, each in found.items() if each and each.attempt == attempts[number]}

    def _seen(self, number: int) -> TrialSeen | None:
        """The observed state of a trial's run; its files are read again only if they have changed."""
        run = self._runs[number]
        record = run.load()
        if record is None or record.trial is None:
            return None
        now = (record.name, record.phase, record.ended, _size(run, STATUS), _size(run, "metrics.jsonl"))
        before, told = self._known.get(number, (None, None))
        if told is None or before != now:
            told = _observe(run, record, self._spec.objective)
            self._known[number] = now, told
        return told

    def start(self, trial: Trial) -> None:
        self._slot_of.pop(trial.number, None)  # that of an earlier attempt
        slot = next(at for at in range(self.parallel) if at not in self._slot_of.values())
        self._slot_of[trial.number] = slot
        order = StartRun(self._folder.options(trial, self._spec))
        with _environment(self._slots[slot]):
            self._runs[trial.number] = starting.start(order)

    def is_asked_to_stop(self) -> bool:
        return self._folder.is_asked_to_stop

    def stop(self, trial: Trial) -> None:
        intent = OnMachine(self._runs[trial.number]).stop()
        if intent.perform:
            intent.perform()


def _observe(run: RunDirectory, record: RunRecord, objective: Objective) -> TrialSeen:
    attempt, place = record.trial.attempt if record.trial else 1, OnMachine(run)
    told = seen(runs.summary(run, record), place.points(()), objective, attempt)
    if told.phase == "Failed":
        return replace(told, message=explain(place.evidence(), datetime.now(UTC)).sentence)
    return told


def _size(run: RunDirectory, file: str) -> tuple[int, int]:
    try:
        stat = (run.path / file).stat()
    except FileNotFoundError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


@contextmanager
def _environment(variables: Slot) -> Iterator[None]:
    """The environment of processes that start in the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
