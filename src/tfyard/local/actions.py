"""What people do to a run of this machine: stop, resume, restart tasks, rerun. `runs.remove` deletes one.

A run that is resumed is a new one, which names the old one and goes on with the same job, the same volumes, and
without the tasks that had finished. So the record and the logs of the old one stay what they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import TfyardError, Usage
from tfyard.local import run_control, runs
from tfyard.local.run_control import Order, Reply
from tfyard.model import RoleMemory, Status
from tfyard.overview.log_lines import chosen
from tfyard.overview.record import RunRecord

if TYPE_CHECKING:
    from tfyard.local.prepared import Prepared

GOES_ON = ("Stopped", "Interrupted", "Killed")
"""Phases of a run that ended before its job did."""


def stop(run: RunDirectory) -> RunRecord:
    """Its tasks end within their grace periods. Returns when the run has ended, with how it did."""
    record = _require_running(run, "stop")
    for _ in _told(run, record, Order("stop")):
        pass
    ended = run.load()
    if ended is None:
        raise TfyardError(f"{run.name} has ended and was removed, because its time to live is over")
    if ended.ended is None:
        raise TfyardError(f"{run.name} does not answer any more; it is process {record.pid}")
    return ended


def to_restart(run: RunDirectory, words: Sequence[str]) -> tuple[str, ...]:
    """The tasks that these words name; without words, all."""
    record = _require_running(run, "restart")
    return chosen(words, [task.name for task in record.tasks])


def restart(run: RunDirectory, tasks: Sequence[str], *, wait: bool = True) -> Iterator[str]:
    """Each of these tasks, once it runs again; it costs no retry."""
    replies = _told(run, _require_running(run, "restart"), Order("restart", tuple(tasks)))
    refused = next(replies, Reply()).refused
    waited = [task for task in tasks if task not in refused]
    if not waited:
        raise TfyardError(f"{run.name}: {', '.join(refused)} is not running")
    for reply in replies if wait else ():
        waited.remove(reply.running)
        yield reply.running
    if waited and wait:
        raise TfyardError(f"{run.name} ended before {', '.join(waited)} ran again")


def resume(run: RunDirectory) -> Prepared:
    """The run that goes on from it, ready to be executed."""
    from tfyard.local import options_file
    from tfyard.local.prepare import prepare  # most of tfyard, which those who only stop a run do not need

    record = _record(run)
    if record.ended is None:
        raise Usage(f"{run.name} is running; there is nothing to resume")
    if record.phase not in GOES_ON:
        again = f"`tfyard rerun {run.name}` runs its job again"
        raise Usage(f"{run.name} has finished ({record.phase}), so there is nothing to resume; {again}")
    if busy := _continued_by(run):
        raise Usage(f"{run.name} was already resumed as {busy}, which is running")
    prepared = prepare(options_file.again(run))
    return replace(prepared, resumes=run.name, memory=_memory(runs.status_of(run)))


def rerun(run: RunDirectory, sets: Sequence[str], env: Sequence[str], name: str | None) -> Prepared:
    """The same job as a new run from its beginning, ready to be executed; with options as of `tfyard run`."""
    from tfyard.local import options_file
    from tfyard.local.prepare import prepare

    _record(run)
    asked = options_file.again(run)
    return prepare(replace(asked, sets=tuple(sets), env=(*asked.env, *env), name=name))


def refuse_scale(run: RunDirectory) -> Usage:
    again = f"`tfyard rerun {run.name} --set worker=4` starts its job with another number"
    return Usage(f"{run.name} is a run on this machine, whose tasks know each other from the start; {again}")


def _memory(status: Status) -> Status:
    """As on a cluster: what has finished does not run again, and retries that were used are used."""
    kept = {
        name: RoleMemory(finished=role.finished, retries=role.retries) for name, role in status.tasks.items()
    }
    return Status(tasks=kept)


def _told(run: RunDirectory, record: RunRecord, order: Order) -> Iterator[Reply]:
    try:
        yield from run_control.send(run.path, order)
    except PermissionError:
        raise TfyardError(f"{run.name} belongs to another user") from None
    except ConnectionResetError:  # it has ended
        return
    except OSError as problem:
        hint = f"press Ctrl-C where it runs (process {record.pid})"
        raise TfyardError(f"{run.name} does not accept requests ({problem.strerror}); {hint}") from None


def _require_running(run: RunDirectory, verb: str) -> RunRecord:
    record = _record(run)
    if record.ended is not None:
        raise Usage(f"{run.name} has ended ({record.phase}), so there is nothing to {verb}; {_next(record)}")
    return record


def _next(record: RunRecord) -> str:
    word = "resume" if record.phase in GOES_ON else "rerun"
    return f"`tfyard {word} {record.name}` {'continues it' if word == 'resume' else 'runs its job again'}"


def _record(run: RunDirectory) -> RunRecord:
    record = run.load()
    if record is None:
        raise Usage(f"{run.name} has no record: it never started")
    return record


def _continued_by(run: RunDirectory) -> str:
    for other in run_directory.all_runs(run.path.parent.parent):
        record = other.load()
        if record is not None and record.resumes == run.name and record.ended is None:
            return record.name
    return ""
