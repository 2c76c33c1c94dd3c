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
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from tfyard.tracking import payloads
from tfyard.tracking.client import MLflowRefused, MLflowServer, MLflowUnreachable
from tfyard.tracking.orders import TrackedRun, TrackingAnswer, TrackingEnd, TrackingOrder

if TYPE_CHECKING:
    from tfyard.tracking.delivery import Delivery

EVERY, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two requests, and between two attempts to reach a server that does not answer."""
ALONE = 60.0
"""Seconds in which the end of a job is reported whose process is gone."""
MISSING = "RESOURCE_DOES_NOT_EXIST"
EXISTS = "RESOURCE_ALREADY_EXISTS"


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=TrackingOrder)
    with os.fdopen(order.feed, "rb") as feed:
        Reporter(order, feed).run()


class Reporter:
    def __init__(self, order: TrackingOrder, feed: BufferedReader) -> None:
        self._order, self._feed = order, feed
        self._server = MLflowServer(order.uri, os.environ)
        self._delivery: Delivery | None = None
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
            delivery = self._delivery = self._delivery or self._begin()
            if end is None or not end.phase:
                delivery.send()
            else:
                delivery.end(end.phase, time.time(), end.tags)
            if end is not None:
                _tell(TrackingAnswer(is_over=True))
            if self._order.directory and not self._has_caught_up:
                self._has_caught_up = True
                from tfyard.tracking.earlier import catch_up  # as much again

                catch_up(self._server, Path(self._order.directory).parent)
        except MLflowUnreachable as problem:
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
            later = ", or by the next run of this folder" if self._order.directory else ""
            _tell(TrackingAnswer(problem=f"{problem}; what is missing is sent when it answers{later}"))
            return False
        except MLflowRefused as problem:
            self._is_refused = True
            _tell(TrackingAnswer(problem=str(problem)))
            return False
        self._pause = EVERY
        return True

    # --- the run

    def _begin(self) -> "Delivery":
        order = self._order
        info = self._again() or self._new()
        state = TrackedRun(uri=order.uri, run=info["run_id"], deciding=order.deciding)
        page = f"{self._server.uri}/#/experiments/{info['experiment_id']}/runs/{state.run}"
        _tell(TrackingAnswer(run=state.run, page=page))
        from tfyard.tracking.delivery import Delivery  # 40 ms, for which no job should wait

        delivery = Delivery(self._server, state, self._feed, order.directory)
        delivery.keep()
        if state.run != order.run:
            self._log_parameters(state.run)
        return delivery

    def _again(self) -> dict[str, str] | None:
        """The run to go on in, which is running again; None: there is none, or it was deleted."""
        if not self._order.run:
            return None
        try:
            body = {"run_id": self._order.run, "status": "RUNNING"}
            info: dict[str, str] = self._server.post("runs/update", body)["run_info"]
        except MLflowRefused as refusal:
            if not refusal.code:
                raise
            return None
        return info

    def _new(self) -> dict[str, str]:
        order = self._order
        body = {
            "experiment_id": self._experiment(),
            "run_name": order.name,
            "start_time": int(order.started * 1000),
            "tags": payloads.pairs(order.tags),
        }
        info: dict[str, str] = self._server.post("runs/create", body)["run"]["info"]
        return info

    def _experiment(self) -> str:
        """Id of the job's experiment. Two jobs may make it at the same time."""
        name = self._order.job
        try:
            found = self._server.get("experiments/get-by-name", experiment_name=name)["experiment"]
        except MLflowRefused as refusal:
            if refusal.code != MISSING:
                raise
            return self._new_experiment(name)
        if found.get("lifecycle_stage") == "deleted":
            raise MLflowRefused(f"its experiment {name} is deleted; restore it, or give the job another name")
        return str(found["experiment_id"])

    def _new_experiment(self, name: str) -> str:
        try:
            return str(self._server.post("experiments/create", {"name": name})["experiment_id"])
        except MLflowRefused as refusal:
            if refusal.code != EXISTS:
                raise
            return self._experiment()

    def _log_parameters(self, run: str) -> None:
        try:
            for part in payloads.parameters(self._order.parameters):
                self._server.post("runs/log-batch", {"run_id": run, "params": part})
        except MLflowRefused as refusal:
            if not refusal.code:
                raise
            _tell(TrackingAnswer(problem=f"{refusal}; parameters are missing there"))


def _tell(answer: TrackingAnswer) -> None:
    with suppress(OSError):  # our parent is gone
        os.write(1, msgspec.json.encode(answer) + b"\n")
