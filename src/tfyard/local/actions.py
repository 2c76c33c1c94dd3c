"""Actions on a run of this machine: stop, resume, restart tasks, rerun. `runs.remove` deletes one.

Resuming starts a new run, which names the old one and continues with the same job and the same volumes, without
the tasks that had finished. So the record and the logs of the old run stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import NotPossible, TfyardError, Usage
from tfyard.local import options_file, run_control
from tfyard.local.prepare import prepare
from tfyard.local.run_control import Order, Reply
from tfyard.logs.lines import chosen
from tfyard.model import RoleMemory, Status
from tfyard.model.run_record import RunRecord
from tfyard.overview.job_table import CUT_OFF

if TYPE_CHECKING:
    from tfyard.local.prepared import PreparedRun


def stop(run: RunDirectory) -> Callable[[], RunRecord]:
    """Asks the run to end its tasks within their grace periods; the returned function waits for its end."""
    record = require_running(run, "stop")
    replies = _send_order(run, record, Order("stop"))
    return lambda: _end(run, record, replies)


def _end(run: RunDirectory, record: RunRecord, replies: Iterator[Reply]) -> RunRecord:
    for _ in replies:
        pass
    ended = run.load()
    if ended is None:
        raise TfyardError(f"{run.name} has ended and was removed, because its time to live is over")
    if ended.ended is None:
        raise TfyardError(f"{run.name} does not answer any more; it is process {record.pid}")
    return ended


def to_restart(run: RunDirectory, words: Sequence[str]) -> tuple[str, ...]:
    """Tasks that the words select; without words, all."""
    record = require_running(run, "restart")
    return chosen(words, [task.name for task in record.tasks])


def restart(run: RunDirectory, tasks: Sequence[str]) -> Iterator[str]:
    """Asks the run to restart the tasks, which costs no retry; yields each task once it runs again."""
    replies = _send_order(run, require_running(run, "restart"), Order("restart", tuple(tasks)))
    refused = next(replies, Reply()).refused
    waited = [task for task in tasks if task not in refused]
    if not waited:
        raise TfyardError(f"{run.name}: {', '.join(refused)} is not running")
    return _running_again(run, waited, replies)


def _running_again(run: RunDirectory, waited: list[str], replies: Iterator[Reply]) -> Iterator[str]:
    for reply in replies:
        waited.remove(reply.running)
        yield reply.running
    if waited:
        raise TfyardError(f"{run.name} ended before {', '.join(waited)} ran again")


def resume(run: RunDirectory) -> PreparedRun:
    """A new run that continues this one, ready to be executed."""
    record = _record(run)
    if record.ended is None:
        raise NotPossible(f"{run.name} is running; there is nothing to resume")
    if record.phase not in CUT_OFF:
        again = f"`tfyard rerun {run.name}` runs its job again"
        raise NotPossible(f"{run.name} has finished ({record.phase}), so there is nothing to resume; {again}")
    if busy := _continued_by(run):
        raise NotPossible(f"{run.name} was already resumed as {busy}, which is running")
    prepared = prepare(options_file.repeated(run))
    return replace(prepared, resumes=run.name, memory=_memory(run.status()))


def rerun(
    run: RunDirectory, sets: Sequence[str], env: Sequence[str], name: str | None, *, is_exact: bool = False
) -> PreparedRun:
    """A new run of the same job from its beginning, with the options of `tfyard run`, ready to be executed.
    `is_exact`: with the code as it was recorded."""
    _record(run)
    options = options_file.repeated(run)
    prepared = prepare(replace(options, sets=tuple(sets), env=(*options.env, *env), name=name))
    if not is_exact:
        return prepared
    from tfyard.local.exact import exact  # 40 ms, and few reruns are exact

    try:
        return exact(prepared, run)
    except BaseException:
        prepared.ports.release()
        raise


def compared(run: RunDirectory, sets: Sequence[str], env: Sequence[str], name: str | None) -> tuple[str, str]:
    """The job files of this run and of a rerun, each with the variables of its `--env`."""
    options, prepared = options_file.repeated(run), rerun(run, sets, env, name)
    before, after = (run.path / "job.yaml").read_text(), formats.dump(prepared.job, "jobfile").text()
    return before + _env_lines(options.variables), after + _env_lines(prepared.settings.variables)


def _env_lines(variables: Mapping[str, str]) -> str:
    return "".join(f"--env {name}={value}\n" for name, value in variables.items())


def _memory(status: Status) -> Status:
    """Memory of the new run, as on a cluster: finished tasks do not run again, and used retries stay used."""
    kept = {
        name: RoleMemory(finished=role.finished, retries=role.retries) for name, role in status.tasks.items()
    }
    return Status(tasks=kept)


def _send_order(run: RunDirectory, record: RunRecord, order: Order) -> Iterator[Reply]:
    try:
        return _until_its_end(run_control.send(run.path, order))
    except PermissionError:
        raise TfyardError(f"{run.name} belongs to another user") from None
    except (ConnectionResetError, BrokenPipeError):  # the run has ended
        return iter(())
    except OSError as problem:
        hint = f"press Ctrl-C where it runs (process {record.pid})"
        raise TfyardError(f"{run.name} does not accept requests ({problem.strerror}); {hint}") from None


def _until_its_end(replies: Iterator[Reply]) -> Iterator[Reply]:
    with suppress(ConnectionResetError):
        yield from replies


def require_running(run: RunDirectory, verb: str) -> RunRecord:
    record = _record(run)
    if record.ended is not None:
        raise NotPossible(
            f"{run.name} has ended ({record.phase}), so there is nothing to {verb}; {_next(record)}"
        )
    return record


def _next(record: RunRecord) -> str:
    word = "resume" if record.phase in CUT_OFF else "rerun"
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
