"""Brings the metrics of one run, and its end, to MLflow, and keeps in the run's directory how far that is done."""

from contextlib import suppress
from io import BufferedReader
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tfyard.tracking import payloads
from tfyard.tracking.client import MLflowServer
from tfyard.tracking.metrics import MetricRows
from tfyard.tracking.orders import KEPT, TrackedRun

CHUNK = 1 << 20
"""Bytes of the file that are read at once."""
MOST_ROWS = 5_000
"""Of one chunk: a program that prints more reports than a server stores is thinned out, evenly."""

_ROW = msgspec.json.Decoder(dict)


class Delivery:
    def __init__(self, server: MLflowServer, state: TrackedRun, feed: BufferedReader, directory: str) -> None:
        self.state = state
        self._server, self._feed = server, feed
        self._path = Path(directory) / KEPT if directory else None
        self._rows = MetricRows(state.deciding)

    def send(self) -> None:
        """Sends all rows that are new. What was not sent completely is sent again: the server drops doublets."""
        while chunk := self._chunk():
            rows = [_ROW.decode(line) for line in chunk.splitlines() if line.endswith(b"}")]
            metrics = self._rows.metrics(payloads.thinned(rows, MOST_ROWS))
            for part in payloads.parts(metrics, payloads.MOST_METRICS):
                self._server.post("runs/log-batch", {"run_id": self.state.run, "metrics": part})
            self._keep(replace(self.state, sent=self.state.sent + len(chunk)))

    def end(self, phase: str, at: float, tags: dict[str, str]) -> None:
        """Sends what is new, and the end."""
        self.send()
        if tags:
            self._server.post("runs/log-batch", {"run_id": self.state.run, "tags": payloads.pairs(tags)})
        end = {"status": payloads.end(phase), "end_time": int(at * 1000)}
        self._server.post("runs/update", {"run_id": self.state.run, **end})
        self._keep(replace(self.state, is_over=True))

    def keep(self) -> None:
        self._keep(self.state)

    def _chunk(self) -> bytes:
        """Whole lines."""
        self._feed.seek(self.state.sent)
        data = self._feed.read(CHUNK)
        return data[: data.rfind(b"\n") + 1]

    def _keep(self, state: TrackedRun) -> None:
        self.state = state
        if self._path is not None:
            new = self._path.with_suffix(".new")
            with suppress(OSError):  # a full disk, or a run that was removed: the server has it all the same
                new.write_bytes(msgspec.json.encode(state))
                new.replace(self._path)
