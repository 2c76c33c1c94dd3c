"""The record of a run on this machine, put together from the files in its directory."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import views
from tfyard.local.recording import DIFF, FILE
from tfyard.logs import devices
from tfyard.model import Job
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.origin import Origin
from tfyard.model.run_record import RunRecord
from tfyard.overview import attempts, job_record
from tfyard.overview.job_record import JobRecord
from tfyard.overview.parameters import command, parameters
from tfyard.planner.leaders import deciding_task

HEAD = 256 << 10
"""Bytes of a log in which TensorFlow says its version and its devices."""


def read(run: RunDirectory, record: RunRecord) -> JobRecord:
    """The record without metrics; `problems` names files that are missing or corrupt."""
    job = views.job_of(run)
    recorded, diff, problems = origin(run, job)
    log = _first_lines(run, job)
    tried = views.attempts_of(run, record)
    return JobRecord(
        name=record.name,
        job=record.job,
        place="machine",
        state=record.phase,
        exit_code=record.exit_code,
        message=record.message,
        started=record.started,
        ended=record.ended,
        origin=recorded,
        tensorflow=devices.tensorflow_version(log) or job_record.tensorflow_of(recorded.software),
        devices=devices.devices(log),
        roles=job_record.roles(job, {}) if job else (),
        attempts=tuple(tried),
        cpu_hours=_cpu_hours(record),
        gpu_hours=attempts.gpu_hours(job, tried, record.ended or datetime.now(UTC)) if job else None,
        diff=diff,
        problems=tuple(problems),
    )


def _cpu_hours(record: RunRecord) -> float | None:
    """The hours of all tasks. What a program used is known at its end, and never if it was killed with tfyard."""
    if any(task.starts and not task.peak for task in record.tasks):
        return None
    return sum(task.cpu for task in record.tasks) / 3600


def origin(run: RunDirectory, job: Job | None) -> tuple[Origin, str, list[str]]:
    """What was recorded at the start of the run, with the diff; else what its job file tells."""
    try:
        recorded = msgspec.json.decode((run.path / FILE).read_bytes(), type=Origin)
    except FileNotFoundError:
        why = "the run has no record of its code and packages"
    except (*CORRUPT_JSON, OSError) as error:
        why = _skipped(run.path / FILE, error)
    else:
        return recorded, *_diff(run.path / DIFF)
    recorded = Origin(command=command(job), parameters=parameters(job)) if job else Origin()
    return recorded, "", [why]


def _diff(path: Path) -> tuple[str, list[str]]:
    """The diff as it was written, line ends and all; and why it is missing."""
    try:
        return path.read_bytes().decode(), []
    except FileNotFoundError:
        return "", []
    except (UnicodeDecodeError, OSError) as error:
        return "", [_skipped(path, error)]


def _skipped(path: Path, error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{_shown(path)} cannot be read ({error.strerror}), and is skipped"
    return f"{_shown(path)} is corrupt ({error}), and is skipped"


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _first_lines(run: RunDirectory, job: Job | None) -> str:
    """The beginning of the log of the task that decides the job."""
    task = deciding_task(job) if job else None
    logs = run.logs(task.name) if task else []
    if not logs:
        return ""
    with logs[-1].open("rb") as file:
        return file.read(HEAD).decode(errors="replace")
