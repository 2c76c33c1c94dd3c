"""When `wait` ends, and with which exit code."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from tfyard.logs.tracebacks import last_exception
from tfyard.model import ConditionType, Failure, Status
from tfyard.model.summary import JobSummary
from tfyard.overview.job_table import state

GOALS: Final = ("succeeded", "running", "finished")
OBSTACLES: Final[dict[str, ConditionType]] = {
    "blocked": "Blocked",
    "waiting": "Waiting",
    "stalled": "Stalled",
}
"""Conditions at which a wait may give up: Blocked is a refusal of the server, Waiting a pod that cannot start,
Stalled a program that has printed nothing for too long."""
DELETED_CODE, TIMEOUT_CODE = 3, 124


class WaitResult(Struct, frozen=True):
    code: int
    """The exit code of `wait`: for a job that failed, that of its program."""
    text: str
    is_of_program: bool = True
    """Whether the code is that of the job; otherwise it was deleted, or the wait timed out."""


def verdict(job: JobSummary, goal: str, fail_on: Collection[str] = ()) -> WaitResult | None:
    """The result of a wait; None if the job has not reached it."""
    status = job.status
    if status.has("Succeeded") or state(job) == "Succeeded":
        return WaitResult(0, f"{job.name}: Succeeded")
    if status.is_finished or state(job) in ("Failed", "Interrupted", "Stopped", "Killed"):
        code = job.exit_code or status.exit_code or 1
        return WaitResult(0 if goal == "finished" else code, _failed(job))
    if goal == "running" and state(job) in ("Running", "Stalled"):
        return WaitResult(0, f"{job.name}: {state(job)}")
    obstacles = (OBSTACLES[name] for name in fail_on)
    return next(
        (WaitResult(1, _obstacle(job, obstacle)) for obstacle in obstacles if status.has(obstacle)), None
    )


def deleted(name: str) -> WaitResult:
    return WaitResult(DELETED_CODE, f"{name} was deleted", is_of_program=False)


def timed_out(name: str, goal: str, last: str) -> WaitResult:
    return WaitResult(
        TIMEOUT_CODE, f"{name} is {last or 'Pending'}, not {goal}: timed out", is_of_program=False
    )


def _failed(job: JobSummary) -> str:
    message = _why(job.status)
    return f"{job.name}: {state(job)}{f': {message}' if message else ''}"


def _why(status: Status) -> str:
    if status.failure:
        return failure_line(status.failure)
    failed = status.condition("Failed")
    return failed.message.split("\n")[0] if failed else ""


def failure_line(failure: Failure) -> str:
    """The failure in one line: only the error of the log lines in its message."""
    before, task, sentence = failure.message.partition(f"{failure.task} ")
    ending, _, log = sentence.partition(": ")
    if not failure.task or "\n" not in log.strip():
        return failure.message.split("\n")[0]
    raised = last_exception(log)
    return f"{before}{task}{ending}: {raised.sentence if raised else log.strip().splitlines()[-1]}"


def _obstacle(job: JobSummary, type: ConditionType) -> str:
    condition = job.status.condition(type)
    return f"{job.name}: {type}: {condition.message if condition else ''}"
