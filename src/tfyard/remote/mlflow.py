"""A job on a cluster at MLflow, while a command of the user follows it. The id of its run is an annotation of the
TFJob, so a command that follows it again goes on in the same run; what is reported twice, the server has once."""

import tempfile
from datetime import datetime
from types import TracebackType
from typing import Self

import msgspec

from tfyard.job_input.code_reading import CodeReading
from tfyard.logs.lines import Lines, LogEvent
from tfyard.model import Job
from tfyard.model.callbacks import Say
from tfyard.model.names import MLFLOW_RUN
from tfyard.overview.metrics import LogRows
from tfyard.overview.waiting import WaitResult
from tfyard.tracking import payloads
from tfyard.tracking.orders import TrackingEnd
from tfyard.tracking.tracker import END, Tracker, order

START, DETACH = 5.0, 1.0
"""Seconds that the submission waits for the run at the server, and that Ctrl-C waits for what is not sent yet."""


class JobAtMLflow:
    """`source`: the file or script that the user gave. As a context manager it ends with the command: before the
    job has ended, its run goes on."""

    def __init__(self, job: Job, uri: str, source: str, say: Say, ended_at: datetime | None = None) -> None:
        self._job, self.uri, self._source, self._say = job, uri, source, say
        self._feed = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `__exit__` closes it
        self._rows, self._encoder = LogRows(), msgspec.json.Encoder()
        self._tracker: Tracker | None = None
        self._end: TrackingEnd | None = None
        self._ended_at = ended_at.timestamp() if ended_at else 0.0
        self._is_new = self._is_followed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.close()
        if self._tracker is None:
            return
        if problem is not None and self._is_new and not self._is_followed:
            self._end = _ended("Killed")  # it was not submitted
        is_whole = self._tracker.end(self._end, END if self._end else DETACH)
        self._look()
        if not is_whole and self._end and not self._tracker.has_told:
            self._say(f"MLflow at {self.uri} is slow: the end of {self._job.name} is not there")

    def begin(self, kept: dict[str, str], code: CodeReading | None = None) -> dict[str, str]:
        """Begins a run, or goes on in that of the annotations that the job keeps; returns the annotations."""
        tracking_order, run = order(self._job, self._source, "JOB"), kept.get(MLFLOW_RUN, "")
        of_code = payloads.of_code(code.result()[0]) if code else {}
        tags = {**tracking_order.tags, **of_code, "tfyard.namespace": self._job.namespace}
        self._tracker = Tracker(tracking_order, uri=self.uri, feed=self._feed.fileno(), run=run, tags=tags)
        run_id = self._tracker.wait_for_run(START)
        self._is_new = run_id != run
        self._look()
        if not run_id:
            return kept
        self._say(f"MLflow: {self._tracker.page}")
        if self._job.mlflow is None:
            self._say("MLflow listens on this machine, so the tasks are not told of their run")
        return {MLFLOW_RUN: run_id}

    def note(self, event: LogEvent | WaitResult | None) -> None:
        """Reports an event of the log that is followed: metrics in its lines, or the end of the job."""
        self._is_followed = True
        if isinstance(event, Lines):
            if rows := self._rows.of(event):
                self._feed.write(self._encoder.encode_lines(rows))
        elif isinstance(event, WaitResult):
            self._end = _ended(_phase(event), self._ended_at)
        elif event is None:
            self._look()

    def _look(self) -> None:
        if self._tracker is not None and (text := self._tracker.problem()):
            self._say(f"warning: {text}; the job goes on")


def _ended(phase: str, at: float = 0.0) -> TrackingEnd:
    return TrackingEnd(phase, {"tfyard.phase": phase}, at)


def _phase(end: WaitResult) -> str:
    if end.code == 0:
        return "Succeeded"
    return "Failed" if end.is_of_program else "Deleted"
