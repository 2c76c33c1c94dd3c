"""What is known of a run on this machine: its record, its status and its logs."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import options_file
from tfyard.local.views import began, job_of, last_log
from tfyard.model import Condition, Job, Manifest, Status, tensorflow_container
from tfyard.model.run_record import PREPARING, RunRecord, TaskRecord
from tfyard.node.logs import tail
from tfyard.overview import why_text
from tfyard.overview.evidence import End, Evidence, LogTail, Preparation
from tfyard.overview.why import explain

LOG_SIZE, LOG_LINES = 64 * 1024, 2_000
"""Bytes and lines of a log that are read: an exception may print a long array."""


def why(run: RunDirectory, record: RunRecord) -> list[str]:
    """Text of `tfyard why` for a run with a failure."""
    now = datetime.now(UTC)
    return list(why_text.lines(explain(gather(run, record), now), now))


def gather(run: RunDirectory, record: RunRecord) -> Evidence:
    status, job = _status(run, record), job_of(run)
    return Evidence(
        name=record.name,
        is_local=True,
        phase=record.phase,
        given_as=options_file.given_as(run),
        code=_code_folder(job) if job else "",
        created=record.started,
        roles=job.roles if job else (),
        spec={"runPolicy": _limits(job)} if job else {},
        status=status,
        ends=tuple(_end(run, task, status) for task in record.tasks if task.outcome == "Failed"),
        preparing=tuple(_preparation(run, task) for task in record.tasks if task.outcome == PREPARING),
        stopped=tuple(task.name for task in record.tasks if task.outcome == "Stopped"),
        logs={task.name: _log(run, task.name) for task in record.tasks if task.outcome == "Running"},
    )


def _code_folder(job: Job) -> str:
    """The folder of the code; that of a script is where tfyard was called."""
    if job.code is not None:
        return job.code.source
    folders = (tensorflow_container(role.template).get("workingDir") for role in job.roles)
    return next((str(each) for each in folders if each), "")


def _status(run: RunDirectory, record: RunRecord) -> Status:
    """Status with the end from the record: a run that was interrupted or killed could not write it."""
    status = run.status()
    if record.ended is None or status.is_finished:
        return status
    ended = Condition("Succeeded" if record.phase == "Succeeded" else "Failed", "True", reason=record.phase)
    return replace(status, conditions=(*status.conditions, ended))


def _limits(job: Job) -> Manifest:
    """Limits of the job, as in the runPolicy of a TFJob."""
    policy = job.run_policy
    limits = {"activeDeadlineSeconds": policy.deadline, "backoffLimit": policy.backoff_limit}
    return {name: value for name, value in limits.items() if value is not None}


def _end(run: RunDirectory, task: TaskRecord, status: Status) -> End:
    ending = next((each for each in reversed(status.endings) if each.task == task.name), None)
    container = ending.container if ending else ""
    log = _log(run, task.name, container)
    return End(
        task=task.name,
        init_container=container,
        exit_code=task.exit_code,
        reason=ending.reason if ending else "",
        text=log.text,
        at=(ending.finished if ending else None) or log.at,
        source="log",
    )


def _preparation(run: RunDirectory, task: TaskRecord) -> Preparation:
    name, log = task.preparing, _log(run, task.name, task.preparing)
    return Preparation(task.name, name, began(run, task.name, name), log)


def _log(run: RunDirectory, task: str, container: str = "") -> LogTail:
    """Log of the last start of the task's program, or of one of its other containers."""
    path = last_log(run, task, container)
    if path is None:
        return LogTail("")
    return LogTail.of(tail(path, LOG_SIZE, LOG_LINES).split("\n"), _written(path))


def _written(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
