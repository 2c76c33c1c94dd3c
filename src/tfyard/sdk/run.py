"""`tfyard.Run`: a job that runs or has run, here or on a cluster."""

import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Self

from tfyard.job_input.options import replicas
from tfyard.model.summary import RecordedEvent
from tfyard.overview import job_table, job_view, waiting
from tfyard.overview.metrics import Point
from tfyard.overview.waiting import Verdict
from tfyard.sdk import card, lines
from tfyard.sdk.durations import seconds
from tfyard.sdk.job import scalar
from tfyard.sdk.lines import Choice, Line, Names
from tfyard.sdk.on_machine import OnMachine
from tfyard.sdk.place import Changes, Executed, Place
from tfyard.sdk.why import JobDeleted, JobFailed, WaitTimeout, Why, why

LOG = logging.getLogger("tfyard")
Goal = Literal["succeeded", "running", "finished"]


class Run:
    """A job that runs or has run. `tfyard.run` and `tfyard.submit` start one, `tfyard.find` finds one.

    What it tells is read anew each time.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    @property
    def name(self) -> str:
        return self._place.name

    @property
    def namespace(self) -> str:
        """Of the cluster; empty for a run on this machine."""
        return self._place.namespace

    @property
    def status(self) -> str:
        """Running, Succeeded, Failed, …: the STATE of `tfyard get`."""
        return job_table.state(self._place.summary()) or "Pending"

    @property
    def exit_code(self) -> int | None:
        """What `tfyard wait` would end with; None while it goes on."""
        over = waiting.verdict(self._place.summary(), "succeeded")
        return None if over is None else self._code(over)

    @property
    def tasks(self) -> list[str]:
        """worker-0, worker-1, …"""
        return self._place.tasks()

    @property
    def directory(self) -> Path | None:
        """The files of a run on this machine: its logs, its metrics, its job file."""
        return self._place.directory.path if isinstance(self._place, OnMachine) else None

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
        """The lines of all tasks, or of some roles or tasks (`worker-0`, `worker-0..3`). With `follow`, they go on
        until the job ends.

        `tail`: the last lines of each task only. `since`: `"10m"`, or `"restart"`. `attempt`: a number, as
        `describe` counts them, or `"all"`; else the last. What tfyard says in between goes to the logger `tfyard`.
        """
        choice = Choice(role=role, task=task, tail=tail, since=since, attempt=attempt)
        return (line for line in self._log_steps(choice, follow=follow) if line is not None)

    def _log_steps(self, choice: Choice, *, follow: bool) -> Iterator[Line | None]:
        """None whenever nothing is new. A mistake is told at once, not with the first line."""
        wanted = choice.wanted(self._place.tasks())
        return lines.lines(self._place.logs(wanted, follow=follow))

    def metrics(self, *tasks: str) -> list[dict[str, Any]]:
        """What the tasks reported in their logs: of these, or of the chief, else the first worker, and the
        evaluator. `pandas.DataFrame(run.metrics())` is a table of it."""
        return [_row(point) for point in self._place.points(tasks)]

    def why(self) -> Why:
        """Why it waits or has failed, and how to fix it."""
        return why(self._place.evidence())

    def describe(self) -> str:
        """All that is known of it, as `tfyard describe` prints it."""
        return "\n".join(job_view.lines(self._place.view(), datetime.now(UTC)))

    def events(self) -> list[dict[str, Any]]:
        """Of the job and its pods, oldest first: time, type, reason, about, message, count."""
        return [
            {"time": each.event.at, "about": each.about, **_event(each.event)}
            for each in self._place.events()
        ]

    def wait(self, timeout: str | float | timedelta | None = None, *, until: Goal = "succeeded") -> Self:
        """Until it has succeeded, runs, or is finished in any way. `JobFailed` if it has failed (its text is
        `why()`), `JobDeleted` if it is gone, `WaitTimeout` if the time is over.

        Ctrl-C ends the wait, not the run."""
        for _ in self._wait_steps(timeout, until):
            pass
        return self

    def _wait_steps(self, timeout: str | float | timedelta | None, until: Goal) -> Iterator[None]:
        deadline = math.inf if timeout is None else time.monotonic() + seconds(timeout)
        last = ""
        for job in self._place.states(deadline):
            if job is None:
                raise JobDeleted(f"{self.name} was deleted")
            if over := waiting.verdict(job, until):
                if over.code:
                    raise JobFailed(self.name, self._code(over), self.why())
                return
            last = job_table.state(job)
            yield
        raise WaitTimeout(waiting.timed_out(self.name, until, last).text)

    # --- what changes it

    def stop(self) -> Self:
        """Its tasks end within their grace period, which is waited for; the job stays, and can be resumed."""
        self._place.stop()
        return self

    def resume(self) -> "Run":
        """Goes on with a job that was stopped: tasks that had finished do not run again. On this machine, it is
        a new run with the same volumes."""
        return Run(self._place.resume())

    def restart(self, *tasks: str) -> Self:
        """These tasks or roles start again, or all; it costs no retry. Waits until they run."""
        self._place.restart(tasks)
        return self

    def scale(self, **roles: int) -> Self:
        """`scale(worker=4)`, of a job on a cluster."""
        self._place.scale(dict(replicas(f"{role}={count}") for role, count in roles.items()))
        return self

    def rerun(
        self, *, name: str | None = None, env: Mapping[str, object] | None = None, **roles: int
    ) -> "Run":
        """A new job of the same spec, from its beginning: `rerun(worker=4, env={"LR": "0.01"})`."""
        sets = tuple(f"{role}={count}" for role, count in roles.items())
        variables = tuple(f"{key}={scalar(value)}" for key, value in (env or {}).items())
        return Run(self._place.rerun(Changes(sets=sets, env=variables, name=name)))

    def delete(self) -> None:
        """Its record, its pods and their logs go. Volumes and claims stay."""
        self._place.delete()

    def get(self, path: str, to: str | os.PathLike[str] = ".") -> Path:
        """Copies a file or folder of a volume of the job to `to`; also after the end. What is there already is not
        copied again. Returns where it is."""
        copied = self._place.get(path, Path(to))
        for note in (*copied.notes, *copied.problems):
            LOG.warning("%s", note)
        return Path(copied.to)

    # --- what reaches into it

    def exec(self, command: str | Sequence[str], task: str = "") -> Executed:
        """Runs a command in a running task and waits for its end: `exec("nvidia-smi", task="worker-0")`. A text is
        for a shell, a list is a program with its arguments. `task` may be left out if there is only one."""
        argv = ("/bin/sh", "-c", command) if isinstance(command, str) else tuple(command)
        return self._place.exec(self._only(task), argv)

    def tensorboard(self, log_dir: str = "") -> AbstractContextManager[str]:
        """TensorBoard over its summaries, also after the end: `with run.tensorboard() as url`. `log_dir`: where
        they are, as the tasks see it; default: as the job says."""
        return self._place.tensorboard(log_dir)

    def port_forward(self, task: str, port: int) -> AbstractContextManager[str]:
        """A port of a task of a cluster, here: `with run.port_forward("worker-0", 6006) as address`, such as
        127.0.0.1:40123. A task that is restarted is reached again at the same address."""
        return self._place.port_forward(self._only(task), port)

    def _only(self, task: str) -> str:
        from tfyard.remote.tasks import only

        return only((task,) if task else (), self._place.tasks())

    # --- in a notebook

    def _ipython_display_(self) -> None:
        card.show(self._place, repr(self))

    def _repr_html_(self) -> str:
        return card.html(self._place)

    def _code(self, over: Verdict) -> int:
        """A run on this machine knows what it ended with, also if it was interrupted."""
        return (self._place.exit_code() or over.code) if over.code else 0

    def __repr__(self) -> str:
        place = f"in the namespace {self.namespace}" if self.namespace else "on this machine"
        return f"<Run {self.name} {place}>"


def _event(event: RecordedEvent) -> dict[str, Any]:
    fields = ("type", "reason", "message", "count")
    return {field: getattr(event, field) for field in fields}


def _row(point: Point) -> dict[str, Any]:
    counts = {name: getattr(point, name) for name in ("epoch", "epochs", "step", "total")}
    known = {name: count for name, count in counts.items() if count is not None}
    return {"time": datetime.fromtimestamp(point.at, UTC), "task": point.task, **known, **point.values}
