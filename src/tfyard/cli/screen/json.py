"""One JSON object per line and event, for scripts."""

import sys
import time

import msgspec

from tfyard.formats.loglines import storable
from tfyard.model.run_events import Counts, Happening, Log, Metric, Skipped
from tfyard.overview.progress import Screen


class JsonScreen(Screen):
    def __init__(self, *, quiet: bool) -> None:
        self._counts: Counts | None = None
        self._quiet = quiet

    def show(self, happening: Happening) -> None:
        if self._quiet and isinstance(happening, Log | Skipped):
            return
        if isinstance(happening, Counts):
            if happening == self._counts:
                return
            self._counts = happening
        row = msgspec.to_builtins(happening)
        if isinstance(happening, Metric):
            row["values"] = storable(happening.values)
        sys.stdout.write(msgspec.json.encode({"time": round(time.time(), 3), **row}).decode() + "\n")
        sys.stdout.flush()
