"""Past runs of this folder: list them, find one, read its metrics and logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Usage
from tfyard.model import Manifest, Status
from tfyard.model.names import JOB_NAME
from tfyard.model.summary import JobSummary

if TYPE_CHECKING:
    from datetime import datetime

    from tfyard.overview.metrics import Point
    from tfyard.overview.progress import Progress
    from tfyard.overview.record import RunRecord

API_VERSION, KIND = "tfyard.dev/v1", "Run"
"""Of a run, where it is shown as an object among TFJobs."""


def records(now: datetime) -> list[RunRecord]:
    """Newest first; those whose time to live is over are removed."""
    run_directory.sweep(now)
    return [record for run in run_directory.all_runs() if (record := run.load()) is not None]


def summaries(now: datetime) -> list[JobSummary]:
    """As the jobs of a cluster are listed: by name."""
    run_directory.sweep(now)
    found = [(run, record) for run in run_directory.all_runs() if (record := run.load()) is not None]
    return sorted((summary(run, record) for run, record in found), key=lambda each: each.name)


def summary(run: RunDirectory, record: RunRecord) -> JobSummary:
    """The record has the last word: a run that was killed could not write its status any more."""
    status = replace(status_of(run), phase=record.phase)
    if record.ended and not status.completion_time:
        status = replace(status, completion_time=record.ended)
    return JobSummary(name=record.name, job=record.job, created=record.started, status=status)


def status_of(run: RunDirectory) -> Status:
    """Empty before its first decision."""
    try:
        return msgspec.json.decode((run.path / "status.json").read_bytes(), type=Status)
    except (FileNotFoundError, msgspec.DecodeError):
        return Status()


def manifest(run: RunDirectory, record: RunRecord) -> Manifest:
    """The run as an object: what was run, as its job file says it, and how it went."""
    import yaml

    found = summary(run, record)
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
        "status": {**msgspec.to_builtins(found.status), "exitCode": record.exit_code},
    }


def find(name: str, home: Path = run_directory.HOME) -> tuple[RunDirectory, RunRecord]:
    run_directory.sweep_scratch(home)
    run = run_directory.find_run(name, home)
    record = run.load()
    if record is None:
        raise Usage(f"{run.name} has no record: it never started")
    return run, record


def remove(name: str) -> str:
    """Remove a run and its logs; returns its name. Volumes stay: other runs use them too."""
    run = run_directory.find_run(name)
    record = run.load()
    if record is not None and record.ended is None:
        raise Usage(f"{run.name} is still running; `tfyard stop {run.name}` stops it")
    from shutil import rmtree  # slow to import

    rmtree(run.path)
    return run.name


def progress(run: RunDirectory) -> Progress:
    """As its metrics tell."""
    from tfyard.overview import metrics  # brings the planner, which lists of runs do not need

    return metrics.progress(points(run))


def points(run: RunDirectory) -> list[Point]:
    from tfyard.overview import metrics

    return [metrics.from_row(row) for row in run.rows("metrics.jsonl")]


def logs(name: str, task: str | None) -> list[Path]:
    """One for each start of each task, or of one task."""
    run_directory.sweep_scratch()
    run = run_directory.find_run(name)
    found = run.logs(task)
    if found:
        return found
    known = sorted({path.name.rsplit(".", 2)[0] for path in run.logs()})
    others = f" of {task}; it has those of {', '.join(known)}" if known else ""
    raise Usage(f"{run.name} has no logs{others}")
