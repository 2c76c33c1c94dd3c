"""Brings the metrics of one run, and its end, to MLflow, and keeps in the run's directory how far that is done."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.origin import Origin
from tfyard.tracking import payloads
from tfyard.tracking.client import MLflowRefused, MLflowServer
from tfyard.tracking.orders import KEPT, TrackedRun, TrackingOrder

if TYPE_CHECKING:
    from tfyard.tracking.metrics import MetricRows

CHUNK = 1 << 20
"""Bytes of the file that are read at once."""
MOST_ROWS = 5_000
"""Rows of one chunk that are sent: a program that prints more than a server stores is thinned out, evenly."""

MISSING = "RESOURCE_DOES_NOT_EXIST"
EXISTS = "RESOURCE_ALREADY_EXISTS"
MARK = "tfyard.id"
"""The tag with the mark of a run."""

RunInfo = dict[str, str]
"""What the server says of a run: `run_id`, `experiment_id` and more."""

_ROW = msgspec.json.Decoder(dict[str, Any])


class Delivery:
    """`feed`: the file with the metrics. It is read without moving its position, which its writer may share."""

    def __init__(self, server: MLflowServer, state: TrackedRun, feed: int) -> None:
        self.state = state
        self._server, self._feed = server, feed
        self._rows: MetricRows | None = None

    def begin(self) -> str:
        """Makes the run at the server, or goes on in one; the result is the address of its page."""
        info = _run_to_continue(self._server, self.state.order) or self._unanswered() or self._new()
        self._keep(replace(self.state, run=info["run_id"]))
        return f"{self._server.uri.rstrip('/')}/#/experiments/{info['experiment_id']}/runs/{self.state.run}"

    def _unanswered(self) -> RunInfo | None:
        """The run that the server has made although we did not get its answer."""
        return next(iter(self._existing_runs()), None) if self.state.creations else None

    def _existing_runs(self) -> list[RunInfo]:
        """The runs that the server has made for this one."""
        query = {
            "experiment_ids": [_experiment(self._server, self.state.order.job)],
            "filter": f"tags.`{MARK}` = '{self.state.mark}'",
        }
        return [each["info"] for each in self._server.post("runs/search", query).get("runs") or ()]

    def _new(self) -> RunInfo:
        """A new run, in the experiment of the job's name."""
        order = self.state.order
        body = {
            "experiment_id": _experiment(self._server, order.job),
            "run_name": order.name,
            "start_time": int(order.started * 1000),
            "tags": payloads.pairs({**order.tags, MARK: self.state.mark}),
        }
        self._keep(replace(self.state, creations=self.state.creations + 1))
        info: RunInfo = self._server.post("runs/create", body, is_repeatable=False)["run"]["info"]
        return info

    def _delete_doublets(self) -> None:
        """Deletes runs that a slow server has made after we had asked again: they would be RUNNING for ever."""
        for info in self._existing_runs() if self.state.creations > 1 else ():
            if info["run_id"] != self.state.run:
                with suppress(MLflowRefused):  # who may not delete runs has an empty one
                    self._server.post("runs/delete", {"run_id": info["run_id"]})

    def log_parameters(self) -> str:
        """Sends the parameters of a new run; what the server says against them, if anything."""
        if self.state.run == self.state.order.run:
            return ""
        try:
            for part in payloads.parameters(self.state.order.parameters):
                self._server.post("runs/log-batch", {"run_id": self.state.run, "params": part})
        except MLflowRefused as refusal:
            if not refusal.code:
                raise
            return f"{refusal}; parameters are missing there"
        return ""

    def send(self) -> None:
        """Sends all rows that are new. What was not sent completely is sent again: the server drops doublets."""
        self._send_code()
        while chunk := self._chunk():
            rows = [row for line in chunk.splitlines() if (row := _row(line)) is not None]
            metrics = self._metrics.metrics(payloads.thinned(rows, MOST_ROWS))
            for part in payloads.parts(metrics, payloads.MOST_METRICS):
                self._server.post("runs/log-batch", {"run_id": self.state.run, "metrics": part})
            self._keep(replace(self.state, sent=self.state.sent + len(chunk)))

    def _send_code(self) -> None:
        """Sends the commit of the code, once the run has recorded it."""
        record = Path(self.state.order.record)
        if self.state.has_code or not self.state.order.record or not record.exists():
            return
        with suppress(*CORRUPT_JSON):
            tags = payloads.of_code(msgspec.json.decode(record.read_bytes(), type=Origin).code)
            self._server.post("runs/log-batch", {"run_id": self.state.run, "tags": payloads.pairs(tags)})
        self._keep(replace(self.state, has_code=True))

    def end(self, phase: str, at: float, tags: dict[str, str]) -> None:
        """Sends what is new, and the end."""
        self.send()
        if tags:
            self._server.post("runs/log-batch", {"run_id": self.state.run, "tags": payloads.pairs(tags)})
        end = {"status": payloads.end(phase), "end_time": int(at * 1000)}
        self._server.post("runs/update", {"run_id": self.state.run, **end})
        self._delete_doublets()
        self._keep(replace(self.state, is_over=True))

    def keep(self) -> None:
        self._keep(self.state)

    @property
    def _metrics(self) -> "MetricRows":
        from tfyard.tracking.metrics import MetricRows  # 40 ms, for which the start of a job should not wait

        self._rows = self._rows or MetricRows(self.state.order.deciding)
        return self._rows

    def _chunk(self) -> bytes:
        """The next lines of the file, of which the last is whole."""
        data = os.pread(self._feed, CHUNK, self.state.sent)
        return data[: data.rfind(b"\n") + 1]

    def _keep(self, state: TrackedRun) -> None:
        self.state = state
        if self.state.order.directory:
            path = Path(self.state.order.directory) / KEPT
            new = path.with_suffix(".new")
            with suppress(OSError):  # a full disk, or a run that was removed: the server has it all the same
                new.write_bytes(msgspec.json.encode(state))
                new.replace(path)


def _row(line: bytes) -> dict[str, Any] | None:
    """The row of a line; None: it was cut when the disk was full, or tfyard was killed."""
    with suppress(*CORRUPT_JSON):
        return _ROW.decode(line)
    return None


def _run_to_continue(server: MLflowServer, order: TrackingOrder) -> RunInfo | None:
    """The run to go on in, which is running again; None: there is none, or it was deleted."""
    if not order.run:
        return None
    try:
        body = {"run_id": order.run, "status": "RUNNING"}
        info: RunInfo = server.post("runs/update", body)["run_info"]
    except MLflowRefused as refusal:
        if not refusal.code:
            raise
        return None
    return info


def _experiment(server: MLflowServer, name: str) -> str:
    """Id of the experiment. Two jobs may make it at the same time."""
    try:
        experiment = server.get("experiments/get-by-name", experiment_name=name)["experiment"]
    except MLflowRefused as refusal:
        if refusal.code != MISSING:
            raise
        return _new_experiment(server, name)
    if experiment.get("lifecycle_stage") == "deleted":
        raise MLflowRefused(f"its experiment {name} is deleted; restore it, or give the job another name")
    return str(experiment["experiment_id"])


def _new_experiment(server: MLflowServer, name: str) -> str:
    try:
        return str(server.post("experiments/create", {"name": name})["experiment_id"])
    except MLflowRefused as refusal:
        if refusal.code != EXISTS:
            raise
        return _experiment(server, name)
