"""Runs on this machine."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfyard.errors import NotPossible, NotRunning, TfyardError, Usage
from tfyard.model.callbacks import Say
from tfyard.sdk import rows
from tfyard.sdk.place import CommandEnded, Done, Intent, SpecText

# Each method imports what only it needs: 45 ms for questions (planner/, node/, formats/), 80 ms for actions (with
# asyncio). Commands about jobs of a cluster need none of it; `tests/cli` says which of them may not import it.

if TYPE_CHECKING:
    from tfyard.backends.local.run_directory import RunDirectory
    from tfyard.file_trees import Copied, CopyProgress
    from tfyard.local.views import RunUsage
    from tfyard.logs.lines import LogEvent, LogSelection
    from tfyard.model import Manifest
    from tfyard.model.run_record import RunRecord
    from tfyard.model.summary import JobSummary
    from tfyard.overview.evidence import Evidence
    from tfyard.overview.job_record import JobRecord
    from tfyard.overview.job_view import JobView, ToldEvent
    from tfyard.overview.metrics import Point
    from tfyard.overview.waiting import WaitResult
    from tfyard.sdk.messages import Rerun, Resume, StartRun
    from tfyard.sdk.pages import LocalSide, Page, Ports
    from tfyard.sdk.place import (
        CommandOutput,
        Copy,
        HelperOptions,
        Listed,
        Place,
        RerunOptions,
        TaskCommand,
    )

LOOK_EVERY = 0.2
"""Seconds between two looks at the record of a run."""


class OnMachine:
    namespace, where, events_kept = "", "on this machine", ""
    rendered_as: tuple[str, ...] = ("tfjob",)

    def __init__(self, directory: RunDirectory, *, asks_again: bool = False) -> None:
        """`asks_again`: the run is used for long, maybe from other folders."""
        self.directory = type(directory)(directory.path.resolve()) if asks_again else directory
        self.name, self.title = directory.name, f"run/{directory.name}"

    @property
    def folder(self) -> Path | None:
        return self.directory.path

    @property
    def record(self) -> RunRecord:
        if record := self.directory.load():
            return record
        raise TfyardError(f"the run {self.name} was deleted")

    def summary(self) -> JobSummary:
        from tfyard.local import runs

        return runs.summary(self.directory, self.record)

    def row(self) -> Listed:
        from tfyard.local import runs

        record = self.record
        return rows.of_run(runs.summary(self.directory, record), is_over=record.ended is not None)

    def sweep(self) -> None:
        return None

    def trials(self) -> list[Place]:
        raise NotPossible(f"{self.name} is a job: only sweeps have trials")

    def manifest(self) -> Manifest:
        from tfyard.local import runs

        return runs.manifest(self.directory, self.record)

    def specs(self) -> list[SpecText]:
        return [SpecText("given", (self.directory.path / "job.yaml").read_text())]

    def code(self, _: HelperOptions) -> list[str]:
        text = "a run on this machine uses the code where it is; `describe --spec` shows the job file"
        raise NotPossible(f"{self.name}: {text}")

    def states(self, deadline: float) -> Iterator[JobSummary | None]:
        from tfyard.local import runs

        while True:
            record = self.directory.load()
            now = runs.summary(self.directory, record) if record else None
            if now is None or record is None or record.ended or not now.status.is_finished:
                yield now  # otherwise its tasks are still stopping
            if time.monotonic() >= deadline:
                return
            time.sleep(max(0.0, min(LOOK_EVERY, deadline - time.monotonic())))

    def tasks(self) -> list[str]:
        record = self.directory.load()
        return [task.name for task in record.tasks] if record else []

    def require_running(self, task: str) -> None:
        from tfyard.local import tasks

        tasks.require_running(self.record, task)

    def logs(self, wanted: LogSelection) -> Iterator[LogEvent]:
        from tfyard.local import logs

        return logs.read(self.directory, wanted)

    def points(self, tasks: tuple[str, ...]) -> list[Point]:
        from tfyard.local import runs
        from tfyard.logs.lines import chosen
        from tfyard.overview import metrics

        points = runs.points(self.directory)
        named = chosen(tasks, self.tasks()) if tasks else metrics.leading({point.task for point in points})
        return [point for point in points if point.task in named]

    def meter(self) -> RunUsage:
        from tfyard.local import views

        return views.RunUsage(self.directory)

    def evidence(self) -> Evidence:
        from tfyard.local import evidence

        return evidence.gather(self.directory, self.record)

    def view(self) -> JobView:
        from tfyard.local import views

        return views.view(self.directory, self.record)

    def events(self) -> list[ToldEvent]:
        from tfyard.local import views

        return views.events(self.directory)

    # --- its record

    def job_record(self) -> JobRecord:
        from tfyard.local import job_records

        return job_records.read(self.directory, self.record)

    def submitter(self) -> str:
        from tfyard.local import job_records

        return job_records.origin(self.directory, None)[0].submitter

    def previous(self) -> Place | None:
        from tfyard.backends.local.run_names import runs_of

        runs = runs_of(self.record.job, self.directory.path.parent.parent, before=self.name)
        return next((OnMachine(run) for run in runs), None)

    def missing_permissions(self) -> dict[str, str]:
        return {}

    # --- actions

    def stop(self) -> Intent:
        from tfyard.local import actions

        record = actions.require_running(self.directory, "stop")
        running = [task.name for task in record.tasks if task.outcome == "Running"]
        goes = f"{', '.join(running)}, after their grace period" if running else "the run itself"
        return self._intent("stop", (goes,), ("its record, its logs and its volumes",), self._stop)

    def _stop(self) -> Done:
        from tfyard.local import actions

        end = actions.stop(self.directory)

        def wait(*_: object) -> Iterator[str]:
            ended = end()
            yield f"{ended.name} {'stopped' if ended.phase == 'Stopped' else f'ended: {ended.phase}'}"

        return Done(wait=wait, goes_on="its tasks end within their grace period", is_waited_for=True)

    def restart(self, words: tuple[str, ...]) -> Intent:
        from tfyard.local import actions

        tasks = actions.to_restart(self.directory, words)
        goes = f"the processes of {', '.join(tasks)}, after their grace period"
        stays = "the other tasks, and the retries that are left"
        return self._intent("restart", (goes,), (stays,), partial(self._restart, tasks))

    def _restart(self, tasks: tuple[str, ...]) -> Done:
        from tfyard.local import actions

        again = actions.restart(self.directory, tasks)
        return Done(
            wait=lambda *_: (f"running again: {task}" for task in again), goes_on="its tasks start again"
        )

    def scale(self, _: dict[str, int]) -> Intent:
        again = f"`tfyard rerun {self.name} --set worker=4` starts its job with another number"
        text = f"{self.name} is a run on this machine, whose tasks know each other from the start"
        raise NotPossible(f"{text}; {again}")

    def delete(self) -> Intent:
        if self.record.ended is None:
            raise NotPossible(f"{self.name} is still running; `tfyard stop {self.name}` stops it")
        intent = self._intent("delete", ("its record and its logs",), ("its volumes",), self._delete)
        return replace(intent, heading=f"delete the run {self.name}")

    def _delete(self) -> Done:
        from tfyard.local import runs

        return Done(text=f"{runs.remove(str(self.directory.path))} deleted")

    def resume(self) -> Intent:
        from tfyard.local import actions
        from tfyard.sdk.messages import Resume

        order = Resume(str(self.directory.path))
        intent = self._intent("resume", (), (), partial(started, order))
        prepare = partial(actions.resume, self.directory)
        return replace(intent, foreground=lambda terminal: terminal.run(prepare))

    def rerun(self, changes: RerunOptions) -> Intent:
        from tfyard.local import actions
        from tfyard.sdk.messages import Rerun

        words = (changes.sets, changes.env, changes.name)
        order = Rerun(str(self.directory.path), *words, is_exact=changes.is_exact)
        intent = self._intent("rerun", (), (), partial(started, order))
        prepare = partial(actions.rerun, self.directory, *words, is_exact=changes.is_exact)
        return replace(
            intent,
            compare=partial(actions.compared, self.directory, *words),
            foreground=lambda terminal: terminal.run(prepare),
        )

    def _intent(
        self, verb: str, goes: tuple[str, ...], stays: tuple[str, ...], perform: Callable[[], Done]
    ) -> Intent:
        return Intent(
            name=self.name,
            title=self.name,
            heading=f"{verb} {self.name}",
            goes=goes,
            stays=stays,
            perform=perform,
        )

    def copy(self, copy: Copy, progress: CopyProgress) -> Copied:
        from tfyard.local import copying

        if copy.is_code:
            raise NotPossible(f"{self.name} ran the code where it is: there is no copy of it")
        there = copying.locate(self.directory, self.record, copy.path, copy.task)
        source, to = (copy.here, there) if copy.is_upload else (there, copy.here)
        return copying.copy(source, to, progress, into=copy.into)

    # --- streams

    async def follow(self, wanted: LogSelection) -> AsyncIterator[LogEvent | WaitResult | None]:
        """Follow the logs. Other coroutines run after each event, so one loop can follow many runs."""
        import asyncio

        from tfyard.local import logs
        from tfyard.overview import waiting

        for event in logs.follow(self.directory, wanted):
            yield event
            await asyncio.sleep(0 if event else logs.LOOK_EVERY)
        record = self.directory.load()
        if record is None:
            yield waiting.deleted(self.name)
        else:
            code = 1 if record.exit_code is None else record.exit_code  # None: tfyard was killed
            yield waiting.WaitResult(code, "")

    def exec_here(self, task: str, command: TaskCommand) -> int:
        """Run the command as a child process, which has the terminal of this one."""
        from tfyard.local import tasks

        _require_no_container(command)
        return tasks.exec(self.record, task, command.argv)

    async def exec(
        self, tasks: Sequence[str], command: TaskCommand
    ) -> AsyncIterator[CommandOutput | CommandEnded]:
        from tfyard.sdk import starting

        _require_no_container(command)
        running = []
        for task in tasks:
            try:
                self.require_running(task)
                running.append(task)
            except NotRunning as problem:
                yield CommandEnded(task, 0, problem)
        if running:
            async for event in starting.in_tasks(self.directory, running, command.argv):
                yield event

    async def stacks(self, tasks: Sequence[str]) -> AsyncIterator[CommandOutput | CommandEnded]:
        """The processes of a task are those below its first: many tasks may be in one namespace of processes."""
        from tfyard.local import tasks as processes
        from tfyard.sdk import starting
        from tfyard.sdk.stacks import PROBE

        for task in tasks:
            try:
                first = processes.number_inside(processes.require_running(self.record, task))
            except NotRunning as problem:
                yield CommandEnded(task, 0, problem)
                continue
            command = (sys.executable, "-P", "-c", PROBE, str(first))
            async for event in starting.in_tasks(self.directory, [task], command):
                yield event

    def port_forward(self, *_: object) -> AbstractAsyncContextManager[Ports]:
        raise NotPossible(f"{self.name} runs on this machine: its ports are at 127.0.0.1 already")

    @asynccontextmanager
    async def tensorboard(
        self, others: Sequence[Place], log_dir: str, _: HelperOptions, here: LocalSide
    ) -> AsyncIterator[list[Page]]:
        """One TensorBoard for all these runs."""
        import asyncio

        from tfyard.local import tensorboard_server
        from tfyard.sdk import pages

        runs = [self]
        for other in others:
            if not isinstance(other, OnMachine):
                raise NotPossible(
                    f"{self.title} is {self.where}, {other.title} {other.where}: a board for each"
                )
            runs.append(other)
        folders = {run.name: tensorboard_server.folder(run.directory, run.record, log_dir) for run in runs}
        async with tensorboard_server.board(folders) as reach:
            over = asyncio.ensure_future(reach.over())
            async with pages.page(f"TensorBoard of {', '.join(folders)}", reach, here, over) as made:
                yield [made]

    def notebook(self, *_: object) -> AbstractAsyncContextManager[Page]:
        raise NotPossible(f"{self.name} runs on this machine: Jupyter here sees the same files")


def _require_no_container(command: TaskCommand) -> None:
    if command.container:
        raise Usage("-c chooses a container of a pod; a task of a run on this machine is one process")


def started(order: StartRun | Resume | Rerun) -> Done:
    """Start the run in a separate process, which ends with this program."""
    from tfyard.sdk import starting

    directory = starting.start(order)
    return Done(text=f"{directory.name} started", made=lambda: OnMachine(directory))


# --- many runs


def home() -> str:
    """The folder of runs. It is read at each use: a notebook may change the working directory."""
    return os.environ.get("TFYARD_HOME") or ".tfyard"


def has_runs() -> bool:
    return Path(home(), "runs").is_dir()


def has_sweeps() -> bool:
    return Path(home(), "sweeps").is_dir()


def all_runs(say: Say = lambda _text: None) -> list[tuple[RunDirectory, RunRecord]]:
    """All runs of this folder, sorted by name; `say` names those whose record is corrupt."""
    if not has_runs():
        return []
    from tfyard.local import runs

    return runs.listed(datetime.now(UTC), Path(home()), say)
