"""The process that reports one job to MLflow.

Its standard input has a `TrackingOrder` in the first line, and a `TrackingEnd` in the last. If the input ends
without one, the process that had the job is gone: a run on this machine was killed then. It also reports what
earlier runs of the same folder could not.
"""

import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from tfyard.tracking.client import MLflowRefused, MLflowServer, MLflowUnreachable
from tfyard.tracking.delivery import Delivery
from tfyard.tracking.orders import TrackedRun, TrackingAnswer, TrackingEnd, TrackingOrder

EVERY, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two requests, and between two attempts to reach a server that does not answer."""
ALONE = 60.0
"""Seconds in which the end of a job is reported whose process is gone."""


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=TrackingOrder)
    MLflowReporter(order).run()


class MLflowReporter:
    def __init__(self, order: TrackingOrder) -> None:
        self._order = order
        self._server = MLflowServer(order.uri, os.environ)
        self._delivery = Delivery(self._server, TrackedRun(order=order, mark=uuid4().hex), order.feed)
        self._delivery.keep()
        self._pause = EVERY
        self._is_refused = self._has_caught_up = False

    def run(self) -> None:
        while True:
            self._try(None)
            end = self._wait(self._pause)
            if end is not None:
                break
        is_alone = not end.phase
        end = replace(end, phase=end.phase or self._order.at_loss)
        until = time.monotonic() + (ALONE if is_alone else 0)
        while not self._try(end) and not self._is_refused and time.monotonic() < until:
            time.sleep(EVERY)

    def _wait(self, seconds: float) -> TrackingEnd | None:
        """The end of the job, if it comes within that time; without a phase if our parent is gone."""
        readable, _, _ = select.select([0], [], [], seconds)
        if not readable:
            return None
        line = sys.stdin.buffer.readline()
        return msgspec.json.decode(line, type=TrackingEnd) if line.endswith(b"\n") else TrackingEnd("")

    def _try(self, end: TrackingEnd | None) -> bool:
        """Reports what is new, and the end if it has come."""
        if self._is_refused:
            return False
        try:
            self._report(end)
        except MLflowUnreachable as problem:
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
            later = ", or by the next run of this folder" if self._order.directory else ""
            _write_answer(
                TrackingAnswer(problem=f"{problem}; what is missing is sent when it answers{later}")
            )
            return False
        except MLflowRefused as problem:
            self._is_refused = True
            _write_answer(TrackingAnswer(problem=str(problem)))
            return False
        self._pause = EVERY
        return True

    def _report(self, end: TrackingEnd | None) -> None:
        delivery = self._delivery
        if not delivery.state.run:
            page = delivery.begin()
            _write_answer(TrackingAnswer(run=delivery.state.run, page=page))
            if problem := delivery.log_parameters():
                _write_answer(TrackingAnswer(problem=problem))
        if end is None or not end.phase:
            delivery.send()
        else:
            delivery.end(end.phase, end.at or time.time(), end.tags)
        if end is not None:
            _write_answer(TrackingAnswer(is_over=True))
        elif self._order.directory and not self._has_caught_up:
            self._has_caught_up = True
            self._catch_up()

    def _catch_up(self) -> None:
        """Reports what earlier runs could not, beside this one."""
        from tfyard.tracking.earlier import catch_up  # 50 ms, for which no job should wait

        folder = Path(self._order.directory).parent
        server = MLflowServer(self._order.uri, os.environ)
        Thread(target=catch_up, args=(server, folder), daemon=True).start()


def _write_answer(answer: TrackingAnswer) -> None:
    with suppress(OSError):  # our parent is gone
        os.write(1, msgspec.json.encode(answer) + b"\n")
