"""A run on this machine.

What a question needs is imported when it is asked: a command of the terminal asks one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from tfyard.errors import TfyardError, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from tfyard.backends.local.run_directory import RunDirectory
    from tfyard.file_trees import Copied
    from tfyard.model.summary import JobSummary
    from tfyard.overview.evidence import Evidence
    from tfyard.overview.job_view import JobView, ToldEvent
    from tfyard.overview.log_lines import LogEvent, Wanted
    from tfyard.overview.metrics import Point
    from tfyard.overview.record import RunRecord
    from tfyard.sdk.place import Changes, Executed

LOOK_EVERY = 0.2
"""Seconds between two looks at the record."""
LOG = logging.getLogger("tfyard")


class OnMachine:
    namespace = ""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory, self.name = directory, directory.name

    @property
    def record(self) -> RunRecord:
        record = self.directory.load()
        if record is None:
            raise TfyardError(f"the run {self.name} was deleted")
        return record

    def summary(self) -> JobSummary:
        from tfyard.local import runs

        return runs.summary(self.directory, self.record)

    def states(self, deadline: float) -> Iterator[JobSummary | None]:
        from tfyard.local import runs

        while True:
            record = self.directory.load()
            now = runs.summary(self.directory, record) if record else None
            if now is None or record is None or record.ended or not now.status.is_finished:
                yield now  # else its tasks are stopping
            if time.monotonic() >= deadline:
                return
            time.sleep(max(0.0, min(LOOK_EVERY, deadline - time.monotonic())))

    def exit_code(self) -> int | None:
        return self.record.exit_code

    def tasks(self) -> list[str]:
        from tfyard.local import logs

        return logs.tasks(self.directory)

    def logs(self, wanted: Wanted, *, follow: bool) -> Iterator[LogEvent | None]:
        from tfyard.local import logs

        return logs.follow(self.directory, wanted) if follow else logs.read(self.directory, wanted)

    def points(self, tasks: tuple[str, ...]) -> list[Point]:
        from tfyard.local import runs
        from tfyard.overview import metrics

        read = runs.points(self.directory)
        wanted = set(tasks) or set(metrics.leading({point.task for point in read}))
        return [point for point in read if point.task in wanted]

    def evidence(self) -> Evidence:
        from tfyard.local import evidence

        return evidence.gather(self.directory, self.record)

    def view(self) -> JobView:
        from tfyard.local import views

        return views.view(self.directory, self.record)

    def events(self) -> list[ToldEvent]:
        from tfyard.local import views

        return views.events(self.directory)

    # --- what changes it

    def stop(self) -> None:
        from tfyard.local import actions

        actions.stop(self.directory)

    def resume(self) -> OnMachine:
        from tfyard.sdk import starting
        from tfyard.sdk.messages import Resume

        return OnMachine(starting.start(Resume(str(self.directory.path))))

    def restart(self, words: tuple[str, ...]) -> None:
        from tfyard.local import actions

        for _ in actions.restart(self.directory, actions.to_restart(self.directory, words)):
            pass

    def scale(self, counts: dict[str, int]) -> None:  # noqa: ARG002
        from tfyard.local import actions

        raise actions.refuse_scale(self.directory)

    def rerun(self, changes: Changes) -> OnMachine:
        from tfyard.sdk import starting
        from tfyard.sdk.messages import Rerun

        asked = Rerun(str(self.directory.path), changes.sets, changes.env, changes.name)
        return OnMachine(starting.start(asked))

    def delete(self) -> None:
        from tfyard.local import runs

        runs.remove(str(self.directory.path))

    def get(self, path: str, to: Path) -> Copied:
        from tfyard.file_trees import Silent
        from tfyard.local import copying

        return copying.copy(copying.locate(self.directory, self.record, path), to, Silent())

    # --- what reaches into it

    def exec(self, task: str, argv: tuple[str, ...]) -> Executed:
        from tfyard.local import tasks
        from tfyard.sdk import starting

        if tasks.leader(self.record, task) is None:
            raise TfyardError(f"{task} of {self.name} is not running")
        return starting.execute(self.directory, task, argv)

    @contextmanager
    def tensorboard(self, log_dir: str) -> Iterator[str]:
        from tfyard.model.names import TENSORBOARD_PORT
        from tfyard.remote.forwarding import Port
        from tfyard.sdk import boards, threads
        from tfyard.sdk.pages import Here

        here = Here(Port(TENSORBOARD_PORT), LOG.info)
        making = boards.answering(boards.of_runs([(self.directory, self.record)], log_dir, here))
        with threads.entered(lambda: making) as address:
            yield address

    def port_forward(self, task: str, port: int) -> AbstractContextManager[str]:  # noqa: ARG002
        raise Usage(f"{self.name} runs on this machine: its ports are at 127.0.0.1 already")
