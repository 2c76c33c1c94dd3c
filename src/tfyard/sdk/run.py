"""`tfyard.Run`: a job that runs or has ended, on this machine or on a cluster."""

import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from tfyard.errors import Usage
from tfyard.file_trees import Silent, goes_into, ignored_by_git
from tfyard.job_input.options import replicas
from tfyard.logs.lines import only
from tfyard.model.names import TENSORBOARD_PORT
from tfyard.model.spelling import did_you_mean
from tfyard.model.summary import RecordedEvent
from tfyard.overview import comparison_text, job_table, job_view, waiting
from tfyard.overview.metrics import Point
from tfyard.sdk import card, comparing, lines, pages, threads
from tfyard.sdk.durations import seconds
from tfyard.sdk.forwarding import Port
from tfyard.sdk.job import check_name, scalar, sets
from tfyard.sdk.lines import Line, LineChoice, Names
from tfyard.sdk.place import (
    CommandEnded,
    Copy,
    Done,
    Executed,
    HelperOptions,
    Intent,
    Place,
    RerunOptions,
    TaskCommand,
)
from tfyard.sdk.why import JobDeleted, JobFailed, WaitTimeout, Why, why

LOG = logging.getLogger("tfyard")
Goal = Literal["succeeded", "running", "finished"]


class Run:
    """A job that runs or has ended. `tfyard.run` and `tfyard.submit` start one, `tfyard.find` finds one.

    Its state is read again at each access.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    @property
    def name(self) -> str:
        return self._place.name

    @property
    def namespace(self) -> str:
        """Namespace of the job; empty for a run on this machine."""
        return self._place.namespace

    @property
    def status(self) -> str:
        """The STATE of `tfyard get`: Running, Succeeded, Failed, …"""
        return job_table.state(self._place.summary())

    @property
    def exit_code(self) -> int | None:
        """The exit code of the job: 0, or that of the task that failed; None while it runs."""
        over = waiting.verdict(self._place.summary(), "succeeded")
        return None if over is None else over.code

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks: worker-0, worker-1, …"""
        return self._place.tasks()

    @property
    def directory(self) -> Path | None:
        """Folder of a run on this machine, with its logs, metrics and job file."""
        return self._place.folder

    def logs(
        self,
        *,
        follow: bool = False,
        role: Names = (),
        task: Names = (),
        tail: int | None = None,
        since: str | float | timedelta = "",
        attempt: int | str = "",
    ) -> Iterator[Line]:
        """The log lines of all tasks, or of some roles or tasks (`worker-0`, `worker-0..3`). With `follow`, until
        the job ends.

        `tail`: only the last lines of each task. `since`: `"10m"`, or `"restart"`. `attempt`: a number, as counted
        by `describe`, or `"all"`; default: the last. Messages of tfyard go to the logger `tfyard`.
        """
        choice = LineChoice(role=role, task=task, tail=tail, since=since, attempt=attempt)
        return (line for line in log_steps(self, choice, follow=follow) if line is not None)

    def metrics(self, *tasks: str) -> list[dict[str, Any]]:
        """The metrics in the logs of these tasks or roles; default: of the chief (else the first worker) and the
        evaluator. `pandas.DataFrame(run.metrics())` makes a table of them."""
        return [_row(point) for point in self._place.points(tasks)]

    def record(self) -> dict[str, Any]:
        """What was run and how it went: parameters, code with its diff, packages, machine, attempts, metrics."""
        return comparison_text.plain_record(comparing.read(self._place))

    def why(self) -> Why:
        """Why the job waits or has failed, and how to fix it."""
        return why(self._place.evidence())

    def describe(self) -> str:
        """The output of `tfyard describe`."""
        return "\n".join(job_view.lines(self._place.view(), datetime.now(UTC)))

    def events(self) -> list[dict[str, Any]]:
        """The events of the job and its pods, oldest first: time, type, reason, about, message, count."""
        return [
            {"time": each.event.at, "about": each.about, **_event(each.event)}
            for each in self._place.events()
        ]

    def wait(self, timeout: str | float | timedelta | None = None, *, until: Goal = "succeeded") -> Self:
        """Wait until the job has succeeded, runs, or has finished in any way. Raises `JobFailed`, with the text of
        `why()`, `JobDeleted`, or `WaitTimeout`.

        Ctrl-C ends the wait, not the run."""
        for _ in wait_steps(self, timeout, until):
            pass
        return self

    # --- actions

    def stop(self) -> Self:
        """Stop the job and wait until its tasks have ended, within their grace period; it can be resumed."""
        self._do(self._place.stop())
        return self

    def resume(self) -> "Run":
        """Continue a stopped job; tasks that had finished do not run again. On this machine, it is a new run with
        the same volumes."""
        return self._do(self._place.resume())

    def restart(self, *tasks: str) -> Self:
        """Restart these tasks or roles, or all tasks, and wait until they run; it uses no retry."""
        self._do(self._place.restart(tasks))
        return self

    def scale(self, /, **roles: int) -> Self:
        """Change the number of tasks of a job on a cluster: `scale(worker=4)`."""
        self._do(self._place.scale(dict(map(replicas, sets(roles)))))
        return self

    def rerun(
        self,
        /,
        *,
        name: str | None = None,
        env: Mapping[str, object] | None = None,
        exact: bool = False,
        **roles: int,
    ) -> "Run":
        """Start a new job with the same spec: `rerun(worker=4, env={"LR": "0.01"})`. `exact`: with the recorded
        code, in a git worktree; on a cluster, with the code and images that ran. The logger `tfyard` says what
        could not be the same."""
        return self._do(self._place.rerun(rerun_options(name, env, exact, roles)))

    def delete(self) -> None:
        """Delete the job with its record, pods and logs. Volumes and claims stay."""
        self._do(self._place.delete())

    def _do(self, intent: Intent) -> "Run":
        """Perform an action and wait until pods are deleted or run again. Returns the new job, or this one."""
        for note in intent.notes:
            LOG.info("%s: %s", self.name, note)
        done = intent.perform() if intent.perform else Done()
        for _ in done.wait(LOG.info, math.inf):
            pass
        return Run(done.made() if done.made else self._place)

    def get(self, path: str, to: str | os.PathLike[str] = ".") -> Path:
        """Copy a file or folder of a volume of the job to `to`, also after its end; into `to`, by its own name, if
        that is `.` or ends with `/`. Equal files are not copied again. A new folder is ignored by git, and so is
        not part of the code of the next job. Returns the path of the copy."""
        here = Path(to, PurePosixPath(path).name if goes_into(os.fspath(to)) else "")
        with ignored_by_git(here):
            copied = self._place.copy(Copy(here=here, path=path), Silent())
        for note in (*copied.notes, *copied.problems):
            LOG.warning("%s", note)
        return Path(copied.to)

    # --- access to tasks

    def exec(self, command: str | Sequence[str], task: str = "") -> Executed:
        """Run a command in a running task and wait for its end: `exec("nvidia-smi", task="worker-0")`. A string is
        run by a shell, a list is a program with its arguments. `task` may be left out if there is only one."""
        argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
        chosen = _only(self._place, task)
        return threads.call(lambda: _executed(self._place, chosen, argv))

    def tensorboard(self, log_dir: str = "") -> AbstractContextManager[str]:
        """Show the summaries in TensorBoard, also after the end: `with run.tensorboard() as url`. `log_dir`:
        folder of the summaries, as the tasks see it; default: that of the job."""
        return threads.entered(lambda: board(self, log_dir))

    def port_forward(self, task: str, port: int) -> AbstractContextManager[str]:
        """Forward a local port to a task on a cluster: `with run.port_forward("worker-0", 6006) as address`, such
        as 127.0.0.1:40123. A restarted task is reached at the same address."""
        forwarding = forwarded(self, task, port)
        return threads.entered(lambda: forwarding)

    # --- in a notebook

    def _ipython_display_(self) -> None:
        card.show(self._place, repr(self))

    def _repr_html_(self) -> str:
        return card.html(self._place)

    def __repr__(self) -> str:
        return f"<Run {self.name} {self._place.where}>"


# --- what `aio.py` awaits in its own way


def place_of(run: Run) -> Place:
    return run._place


def log_steps(run: Run, choice: LineChoice, *, follow: bool) -> Iterator[Line | None]:
    """The lines, and None whenever nothing is new. Wrong arguments raise at once, not with the first line."""
    place = place_of(run)
    wanted = choice.wanted(place.tasks())
    return lines.lines(threads.iterate(lambda: place.follow(wanted)) if follow else place.logs(wanted))


def wait_steps(run: Run, timeout: str | float | timedelta | None, until: Goal) -> Iterator[None]:
    """Waits as `Run.wait` does; a step is a look at the job."""
    if until not in waiting.GOALS:
        raise Usage(f"until={until!r}: unknown; {did_you_mean(until, waiting.GOALS)}")
    limit = math.inf if timeout is None else seconds(timeout, "timeout", ", or a number of seconds")
    last = ""
    for job in place_of(run).states(time.monotonic() + limit):
        if job is None:
            raise JobDeleted(f"{run.name} was deleted")
        if over := waiting.verdict(job, until):
            if over.code:
                raise JobFailed(run.name, over.code, run.why())
            return
        last = job_table.state(job)
        yield
    raise WaitTimeout(waiting.timed_out(run.name, until, last).text)


def board(run: Run, log_dir: str) -> AbstractAsyncContextManager[str]:
    here = pages.LocalSide(Port(TENSORBOARD_PORT), LOG.info)
    return pages.answering(place_of(run).tensorboard((), log_dir, HelperOptions(), here))


def forwarded(run: Run, task: str, port: int) -> AbstractAsyncContextManager[str]:
    place = place_of(run)
    chosen = _only(place, task)
    forwarding = place.port_forward((chosen,), [Port(port)])
    place.require_running(chosen)
    return pages.address(forwarding)


def rerun_options(
    name: str | None, env: Mapping[str, object] | None, exact: bool, roles: Mapping[str, int]
) -> RerunOptions:
    check_name(name)
    variables = tuple(f"{key}={scalar(value)}" for key, value in (env or {}).items())
    return RerunOptions(sets=sets(roles), env=variables, name=name, is_exact=exact)


def _only(place: Place, task: str) -> str:
    return only((task,) if task else (), place.tasks())


async def _executed(place: Place, task: str, argv: tuple[str, ...]) -> Executed:
    written, code = {1: b"", 2: b""}, 0
    async for event in place.exec((task,), TaskCommand(argv=argv)):
        if not isinstance(event, CommandEnded):
            written[event.stream] += event.data
        elif event.problem:
            raise event.problem
        else:
            code = event.code
    return Executed(code, *(text.decode(errors="replace") for text in written.values()))


def _event(event: RecordedEvent) -> dict[str, Any]:
    fields = ("type", "reason", "message", "count")
    return {field: getattr(event, field) for field in fields}


def _row(point: Point) -> dict[str, Any]:
    counts = {name: getattr(point, name) for name in ("epoch", "epochs", "step", "total")}
    known = {name: count for name, count in counts.items() if count is not None}
    return {"time": datetime.fromtimestamp(point.at, UTC), "task": point.task, **known, **point.values}
