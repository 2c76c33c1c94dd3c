"""Past runs of this folder: list them, find one, read its metrics and logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import msgspec
import yaml
from msgspec.structs import replace

from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.backends.local.run_names import find_run, job_of
from tfyard.errors import NotPossible, Usage
from tfyard.model import Manifest, RoleStatus, Status
from tfyard.model.callbacks import Say
from tfyard.model.names import JOB_NAME
from tfyard.model.summary import JobSummary
from tfyard.overview import metrics
from tfyard.overview.wording import on_this_machine
from tfyard.planner.results import ready

if TYPE_CHECKING:
    from datetime import datetime

    from tfyard.model.run_record import RunRecord
    from tfyard.overview.metrics import Point
    from tfyard.overview.progress import Progress

API_VERSION, KIND = "tfyard.dev/v1", "Run"
"""apiVersion and kind of a run that is shown as an object among TFJobs."""


def _silent(_text: str) -> None:
    """Default of `say`."""


def records(now: datetime, say: Say = _silent) -> list[RunRecord]:
    """Records of the runs, newest first; runs whose time to live is over are removed."""
    return [record for _, record in _read(now, run_directory.HOME, say)]


def listed(
    now: datetime, home: Path = run_directory.HOME, say: Say = _silent
) -> list[tuple[RunDirectory, RunRecord]]:
    """Runs by name, as jobs of a cluster are listed; runs whose time to live is over are removed."""
    return sorted(_read(now, home, say), key=lambda each: each[1].name)


def _read(now: datetime, home: Path, say: Say) -> Iterator[tuple[RunDirectory, RunRecord]]:
    for run, record in run_directory.sweep(now, home):
        if record is not None:
            yield run, record
        elif run.is_corrupt:
            say(f"{run.name} is skipped: its record ({run.path / 'run.json'}) is corrupt")


def summary(run: RunDirectory, record: RunRecord) -> JobSummary:
    """Summary with the phase of the record: a run that was killed could not write its status."""
    status = replace(_in_words(run.status()), phase=record.phase)
    if record.ended:
        ended, roles = status.completion_time or record.ended, _roles(status, record)
        status = replace(status, completion_time=ended, replica_statuses=roles)
    return JobSummary(
        name=record.name, job=record.job, created=record.started, status=status, exit_code=record.exit_code
    )


def _in_words(status: Status) -> Status:
    conditions = (replace(each, message=on_this_machine(each.message)) for each in status.conditions)
    failure = status.failure
    if failure is not None:
        failure = replace(failure, message=on_this_machine(failure.message))
    return replace(status, conditions=tuple(conditions), failure=failure)


def _roles(status: Status, record: RunRecord) -> dict[str, RoleStatus]:
    """The roles of an ended run with `ready` by its record: tasks may have ended after the last decision."""
    roles = {}
    for name, counted in status.replica_statuses.items():
        outcomes = [each.outcome for each in record.tasks if each.name.rpartition("-")[0] == name.lower()]
        counts = [outcomes.count(each) for each in ("Succeeded", "Failed", "Stopped")]
        roles[name] = replace(counted, ready=ready(counts[0], len(outcomes), *counts[1:]))
    return roles


def manifest(run: RunDirectory, record: RunRecord) -> Manifest:
    """The run as an object: its job file is the spec."""
    status = summary(run, record).status
    job = run.path / "job.yaml"
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": record.name,
            "labels": {JOB_NAME: record.job},
            "creationTimestamp": msgspec.to_builtins(record.started),
        },
        "spec": yaml.safe_load(job.read_text()) if job.exists() else {},
        "status": {**msgspec.to_builtins(status), "exitCode": record.exit_code},
    }


def find(
    name: str, home: Path = run_directory.HOME, say: Say = _silent, *, whole: bool = False
) -> tuple[RunDirectory, RunRecord]:
    """A run with its record, by the rules of `run_names.find_run`; `say` tells which run a beginning means."""
    run_directory.sweep_scratch(home)
    run = find_run(name, home, whole=whole)
    _tell_which(name, run, say)
    record = run.load()
    if record is None:
        what = "its record (run.json) is corrupt" if run.is_corrupt else "it has no record: it never started"
        raise Usage(f"{run.name}: {what}")
    return run, record


def _tell_which(name: str, run: RunDirectory, say: Say) -> None:
    if run.name.startswith(name) and name not in (run.name, job_of(run)):
        say(f"{name} is the run {run.name}")


def remove(name: str) -> str:
    """Remove a run and its logs, by its whole name; returns that. Volumes stay: other runs use them too."""
    run = find_run(name, whole=True)
    record = run.load()
    if record is not None and record.ended is None:
        raise NotPossible(f"{run.name} is still running; `tfyard stop {run.name}` stops it")
    rmtree(run.path)
    return run.name


def progress(run: RunDirectory) -> Progress:
    """Progress by the metrics of the run."""
    return metrics.progress(points(run))


def points(run: RunDirectory) -> list[Point]:
    return [metrics.from_row(row) for row in run.rows("metrics.jsonl")]


def logs(name: str, task: str | None, say: Say = _silent) -> list[Path]:
    """Log files, one for each start of each task, or of one task."""
    run_directory.sweep_scratch()
    run = find_run(name)
    _tell_which(name, run, say)
    paths = run.logs(task)
    if paths:
        return paths
    names = sorted({path.name.rsplit(".", 2)[0] for path in run.logs()})
    others = f" of {task}; it has those of {', '.join(names)}" if names else ""
    raise Usage(f"{run.name} has no logs{others}")
