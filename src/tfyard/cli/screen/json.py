"""One JSON object per line and event, for scripts."""

import sys
import time

import msgspec

from tfyard.controller.happenings import Counts, Happening

from .base import Screen


class JsonScreen(Screen):
    def __init__(self) -> None:
        self._counts: Counts | None = None

    def show(self, happening: Happening) -> None:
        if isinstance(happening, Counts):
            if happening == self._counts:
                return
            self._counts = happening
        row = {"time": round(time.time(), 3), **msgspec.to_builtins(happening)}
        sys.stdout.write(msgspec.json.encode(row).decode() + "\n")
        sys.stdout.flush()
