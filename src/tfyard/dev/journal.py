"""What the box says about itself: in its log, and in its folder for `up` and `status`."""

import logging
from datetime import UTC, datetime

from msgspec.structs import replace

from tfyard.dev.folder import BoxFolder, State

log = logging.getLogger(__name__)


class Journal:
    def __init__(self, folder: BoxFolder) -> None:
        self._folder = folder
        self._state = State(phase="starting", started=datetime.now(UTC))
        self._write()

    def starting(self, what: str) -> None:
        log.info("starting %s", what)
        self._write(message=what)

    def describe(self, *, port: int, kubernetes: str) -> None:
        self._write(port=port, kubernetes=kubernetes)

    def note(self, text: str) -> None:
        """Said once, by `up` and by `status`."""
        log.warning(text)
        self._write(notes=[*self._state.notes, text])

    def ended(self, name: str, said: str) -> None:
        log.warning("%s has ended: %s", name, said)
        self._write(ended={**self._state.ended, name: said})

    def restarted(self, name: str) -> None:
        restarts = self._state.restarts
        ended = {other: said for other, said in self._state.ended.items() if other != name}
        self._write(restarts={**restarts, name: restarts.get(name, 0) + 1}, ended=ended)

    def ready(self) -> None:
        log.info("ready")
        self._write(phase="ready", message="")

    def stopping(self) -> None:
        log.info("stopping")
        self._write(phase="stopping", message="")

    def failed(self, why: str) -> None:
        log.error("failed: %s", why)
        self._write(phase="failed", message=why)

    def _write(self, **changes: object) -> None:
        """A disk that is full must not end what runs; the next thing that is said may be written again."""
        self._state = replace(self._state, **changes)
        try:
            self._folder.write(self._state)
        except OSError as problem:
            log.error("its state cannot be written: %s", problem)
