"""Sweeps of this machine: `.tfyard/sweeps/<name>-<time>/`, with everything that is needed to go on with one.

job.yaml     the job, with the names of the parameters in braces     sweep.json   values and states of the trials
asked.json   with which options                                      optuna.log   Optuna's journal, if it searches
stop         it is asked to stop: `tfyard stop` writes it

The trials are runs like any others.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

import msgspec
from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import SWEEPS, RunDirectory
from tfyard.errors import NoSuchJob, NotPossible, TfyardError, Usage
from tfyard.formats.sweepfile import fitting
from tfyard.local import gpus, options_file
from tfyard.local.machine import memory
from tfyard.local.prepare import prepare
from tfyard.local.prepared import PreparedRun
from tfyard.local.settings import RunOptions
from tfyard.local.shortfalls import memory_limit
from tfyard.model import PS, Job, tensorflow_container
from tfyard.model.quantity import amount
from tfyard.model.sweep import SweepSpec, SweepState, Trial, TrialOf, trial_name
from tfyard.sweeps.decide import stopped

STATE, JOURNAL, STOP = "sweep.json", "optuna.log", "stop"


class SweepFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def home(self) -> Path:
        return self.path.parent.parent

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    def load(self) -> SweepState | None:
        """The state; None: the sweep was deleted, or its state is corrupt."""
        try:
            return msgspec.json.decode((self.path / STATE).read_bytes(), type=SweepState)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return None

    @property
    def is_corrupt(self) -> bool:
        return (self.path / STATE).exists() and self.load() is None

    def save(self, state: SweepState) -> None:
        try:
            run_directory.replace_file(self.path / STATE, msgspec.json.encode(state).decode())
        except FileNotFoundError:
            raise NoSuchJob(f"the sweep {self.name} was deleted") from None

    @property
    def is_driven(self) -> bool:
        """Whether a process drives the sweep: it has the lock, which ends with it."""
        return run_directory.is_locked(self.path)

    @contextmanager
    def driving(self) -> Iterator[None]:
        locked = run_directory.lock(self.path)
        if locked is None:
            raise NotPossible(f"{self.name} is running; `tfyard stop {self.name}` stops it")
        (self.path / STOP).unlink(missing_ok=True)
        try:
            yield
        finally:
            os.close(locked)

    @property
    def is_asked_to_stop(self) -> bool:
        return (self.path / STOP).exists()

    def ask_to_stop(self) -> None:
        (self.path / STOP).touch()

    def as_it_is(self, state: SweepState) -> SweepState:
        """The state; stopped, if the process that drove it was killed."""
        if state.phase != "Running" or self.is_driven:
            return state
        ended = datetime.fromtimestamp((self.path / STATE).stat().st_mtime, UTC)
        return stopped(state, ended, "the process that drove it was killed")

    def run_options(self) -> RunOptions:
        return options_file.repeated(RunDirectory(self.path))

    def options(self, trial: Trial, spec: SweepSpec) -> RunOptions:
        """Options that start a trial."""
        of = TrialOf(sweep=self.name, number=trial.number, values=trial.values, attempt=trial.attempt)
        return replace(self.run_options(), name=trial_name(spec.name, trial.number), trial=of)

    def runs(self, spec: SweepSpec) -> dict[int, RunDirectory]:
        """The run of the last attempt at each trial."""
        attempts = sorted(self._attempts(spec), key=lambda each: each[0].attempt)
        return {trial.number: run for trial, run in attempts}

    def _attempts(self, spec: SweepSpec) -> Iterator[tuple[TrialOf, RunDirectory]]:
        for run in run_directory.all_runs(self.home):
            record = run.load() if run.name.startswith(f"{spec.name}-") else None
            if record and record.trial and record.trial.sweep == self.name:
                yield record.trial, run

    def remove(self) -> None:
        """Removes the sweep and all runs of its trials. Their volumes stay."""
        state = self.load()
        for _, run in self._attempts(state.spec) if state else ():
            rmtree(run.path, ignore_errors=True)
        rmtree(self.path)


def make(
    spec: SweepSpec, asked: RunOptions, now: datetime, home: Path, check: Callable[[Job], object]
) -> tuple[SweepFolder, SweepSpec, Job]:
    """The folder of a new sweep, and its job. Everything that can be wrong is checked before it is made."""
    spec, prepared = checked(spec, asked, check)
    folder = _new(home, folder_name(spec, now))
    (folder.path / "job.yaml").write_text(formats.dump(prepared.job, "jobfile").text())
    run_directory.replace_file(folder.path / options_file.NAME, options_file.text(prepared), 0o600)
    return folder, spec, prepared.job


def checked(
    spec: SweepSpec, asked: RunOptions, check: Callable[[Job], object]
) -> tuple[SweepSpec, PreparedRun]:
    """The sweep with its name, and its job. `check` raises for what else is wrong."""
    prepared = prepare(replace(asked, makes_output=asked.is_script))
    prepared.ports.release()  # each trial takes its own
    spec = fitting.named(spec, prepared.job)
    fitting.check(spec, prepared.job)
    check(prepared.job)
    return spec, prepared


def folder_name(spec: SweepSpec, now: datetime) -> str:
    return f"{spec.name}-{now.astimezone():%Y%m%d-%H%M%S}"


def _new(home: Path, stem: str) -> SweepFolder:
    sweeps = home / SWEEPS
    try:
        sweeps.mkdir(parents=True, exist_ok=True)
        for name in [stem, *(f"{stem}-{number}" for number in range(2, 1000))]:
            if not (sweeps / name).exists():
                (sweeps / name).mkdir()
                return SweepFolder(sweeps / name)
    except OSError as error:
        raise TfyardError(f"{error.filename or home}: {error.strerror}") from None
    raise Usage(f"too many sweeps named {stem}")


def all_sweeps(
    home: Path, say: Callable[[str], None] = lambda _text: None
) -> list[tuple[SweepFolder, SweepState]]:
    """The newest first; `say` names those whose state is corrupt."""
    sweeps = list[tuple[SweepFolder, SweepState]]()
    for folder in map(SweepFolder, (home / SWEEPS).iterdir() if (home / SWEEPS).is_dir() else ()):
        if (state := folder.load()) is not None:
            sweeps.append((folder, state))
        elif folder.is_corrupt:
            say(f"the sweep {folder.name} is skipped: its state ({folder.path / STATE}) is corrupt")
    return sorted(sweeps, key=lambda each: each[1].created, reverse=True)


def prune(home: Path) -> tuple[str, ...]:
    """Removes the oldest sweeps with their trials, if there are more of them than runs are kept; returns their
    names."""
    keep = run_directory.kept()
    old = [folder for folder, _ in all_sweeps(home)[keep:] if not folder.is_driven] if keep else []
    for folder in old:
        folder.remove()
    return tuple(folder.name for folder in old)


def begun(name: str, home: Path) -> SweepFolder | None:
    """The newest of the sweeps whose folders have this prefix, if all have one name in their files."""
    sweeps = [(folder, state.spec.name) for folder, state in all_sweeps(home) if folder.name.startswith(name)]
    return sweeps[0][0] if len({of for _, of in sweeps}) == 1 else None


def called(name: str, home: Path) -> SweepFolder | None:
    """The sweep of this name: that of its folder, or the newest of those with the name in its file."""
    sweeps = all_sweeps(home)
    exact = (folder for folder, _ in sweeps if folder.name == name)
    return next(exact, None) or next((folder for folder, state in sweeps if state.spec.name == name), None)


# --- trials at the same time: cores, memory and GPUs of this machine are shared out over all of them


Slot = dict[str, str]
"""Variables of the trials that run in it."""


def slots(job: Job, asked: int | None, *, sharing: bool = False) -> list[Slot]:
    """A slot for each trial that runs at the same time. `asked`: number of them; None: as many as fit."""
    devices = gpus.visible()
    requested = sum(gpus.requested(role.template) * role.replicas for role in job.roles)
    most = len(devices) // requested if requested and devices and not sharing else None
    if asked is not None and most is not None and asked > most:
        fits = (
            f"this machine has {len(devices)}, enough for {most}"
            if most
            else f"this machine has {len(devices)}"
        )
        raise Usage(f"parallel {asked}: each trial requests {gpus.counted(requested)}, and {fits}")
    count = asked or that_fit(job, len(os.sched_getaffinity(0)), memory(), devices)
    return [_slot(number, count, devices) for number in range(count)]


def that_fit(job: Job, cores: int, memory_size: float, devices: Sequence[str]) -> int:
    """The number of trials that fit at the same time; at least one."""
    asked_cores = sum(_cores(role.template, role.name) * role.replicas for role in job.roles)
    asked_memory = sum(memory_limit(role.template) * role.replicas for role in job.roles)
    requested = sum(gpus.requested(role.template) * role.replicas for role in job.roles)
    fits = [cores / max(asked_cores, 0.01)]
    fits += [memory_size / asked_memory] if asked_memory else []
    if devices:
        trainers = sum(role.replicas for role in job.roles if role.name != PS)
        fits.append(len(devices) / (requested or trainers or 1))
    return max(1, int(min(fits)))


def _cores(template: dict[str, object], role: str) -> float:
    """Cores that a task uses: what it is limited to, else one; parameter servers wait most of the time."""
    limits = (tensorflow_container(template).get("resources") or {}).get("limits") or {}
    return float(amount(limits.get("cpu")) or (0 if role == PS else 1))


def _slot(number: int, count: int, devices: Sequence[str]) -> Slot:
    if not devices:
        return {}
    each = len(devices) // count
    if each:
        return {gpus.VARIABLE: ",".join(devices[number * each : (number + 1) * each])}
    return {gpus.VARIABLE: devices[number % len(devices)], **gpus.ALLOW_GROWTH}
