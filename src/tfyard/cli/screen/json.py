"""One JSON object per line and event, for scripts."""

import sys
import time

import msgspec

from tfyard.cli.screen.base import Screen
from tfyard.formats.loglines import storable
from tfyard.model.run_events import Counts, Log, Metric, RunEvent, Skipped


class JsonScreen(Screen):
    def __init__(self, *, quiet: bool) -> None:
        self._counts: Counts | None = None
        self._quiet = quiet

    def show(self, event: RunEvent) -> None:
        if self._quiet and isinstance(event, Log | Skipped):
            return
        if isinstance(event, Counts):
            if event == self._counts:
                return
            self._counts = event
        row = msgspec.to_builtins(event)
        if isinstance(event, Metric):
            row["values"] = storable(event.values)
        sys.stdout.write(msgspec.json.encode({"time": round(time.time(), 3), **row}).decode() + "\n")
        sys.stdout.flush()
