"""Our end of the process that reports a job to MLflow. No call here waits longer than it is told to."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from getpass import getuser
from typing import Any

import msgspec
from msgspec.structs import replace

from tfyard import __version__
from tfyard.model import Job
from tfyard.node.launch import PACKAGES
from tfyard.node.orphans import MARK
from tfyard.overview.parameters import NONE, parameters
from tfyard.planner.leaders import deciding_task
from tfyard.tracking.orders import TrackingAnswer, TrackingEnd, TrackingOrder

PROGRAM = f"""import sys; sys.path.append({PACKAGES!r})
from tfyard.tracking.reporter import main; main()"""
START, END, NO_RUN = 2.0, 3.0, 1.0
"""Seconds that the start of a job waits for its run at the server, and its end for the end there: less if that has
not even answered at the start."""
CHUNK = 1 << 16


def order(job: Job, source: str, source_type: str, variables: Mapping[str, str] = NONE) -> TrackingOrder:
    """The order to report a job, as far as it is the same wherever the job runs. `source`: what the user gave.
    `variables`: those that are not in the job."""
    task = deciding_task(job)
    tags = {"mlflow.source.name": source, "mlflow.source.type": source_type, "mlflow.user": _user()}
    return TrackingOrder(
        uri=job.mlflow.uri if job.mlflow else "",
        job=job.name,
        name=job.name,
        deciding=task.name if task else "",
        started=time.time(),
        parameters=parameters(job, variables),
        tags={**tags, "tfyard.job": job.name, "tfyard.version": __version__},
    )


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # no entry for this user id, as in a container
        return str(os.getuid())


class Tracker:
    """Our end of the process that reports a job. `run` and `page` are known once the server has answered. It
    has its own session: neither Ctrl-C nor the end of tfyard ends it, so it can report that as well."""

    def __init__(self, order: TrackingOrder, **fields: Any) -> None:
        """`fields`: those of the order that differ."""
        order = replace(order, **fields)
        self.run = self.page = ""
        self._server = order.uri
        self._problems: list[str] = []
        self.has_told = self._has_reported = self._is_over = False
        self._output, self._rest = os.memfd_create("mlflow"), b""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM],  # -P: no modules of the working directory
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            pass_fds=[order.feed],
            env={name: value for name, value in os.environ.items() if name != MARK},
            start_new_session=True,
        )
        self._write(msgspec.json.encode(order))

    def wait_for_run(self, seconds: float = START) -> str:
        """Id of the run, or empty if the server has not answered by then."""
        until = time.monotonic() + seconds
        while not (self.run or self._problems or self._is_over) and (left := until - time.monotonic()) > 0:
            self._look(left)
        return self.run

    def problem(self) -> str:
        """What stands in the way, in one line; once, and then empty."""
        self._look(0)
        if self.has_told or not self._problems:
            return ""
        self.has_told = True
        return f"MLflow at {self._server}: {self._problems[0]}"

    def end(self, end: TrackingEnd | None, seconds: float = END) -> bool:
        """Reports the end of the job; without one, the job goes on. Whether the server has all of it."""
        if end is not None:
            self._write(msgspec.json.encode(end))
        self.close(seconds if self.run else min(seconds, NO_RUN))
        return self._has_reported

    def close(self, seconds: float = 0.0) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._look(0)
        self._process.stdout.close()

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended; its output says why
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def _look(self, seconds: float) -> None:
        """Takes answers, after waiting for one if there is none."""
        assert self._process.stdout is not None
        while not self._is_over and select.select([self._process.stdout], [], [], seconds)[0]:
            data = os.read(self._process.stdout.fileno(), CHUNK)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._take(msgspec.json.decode(line, type=TrackingAnswer))
            if not data:
                self._is_over = True
                self._note_failure()
            seconds = 0

    def _take(self, answer: TrackingAnswer) -> None:
        self.run, self.page = answer.run or self.run, answer.page or self.page
        self._has_reported |= answer.is_over
        self._problems += [answer.problem] if answer.problem else []

    def _note_failure(self) -> None:
        """Notes the last line of what the process has printed: it prints nothing unless it fails."""
        size = os.fstat(self._output).st_size
        if output := os.pread(self._output, size, 0).decode(errors="replace").strip():
            self._problems.append(f"the process that reports to it has failed ({output.splitlines()[-1]})")
