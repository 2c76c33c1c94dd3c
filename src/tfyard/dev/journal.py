"""Reports of a cluster's process: in its log, and in its folder for `up` and `status`."""

import logging
from datetime import UTC, datetime

from msgspec.structs import replace

from tfyard.dev.folder import BoxFolder, ReportedState

log = logging.getLogger(__name__)


class Journal:
    def __init__(self, folder: BoxFolder) -> None:
        self._folder = folder
        self._state = ReportedState(phase="starting", started=datetime.now(UTC))
        self._write()

    def starting(self, component: str) -> None:
        log.info("starting %s", component)
        self._write(message=component)

    def describe(self, *, port: int, kubernetes: str) -> None:
        self._write(port=port, kubernetes=kubernetes)

    def note(self, text: str) -> None:
        """Add a note for the user, which `up` and `status` show."""
        log.warning(text)
        self._write(notes=[*self._state.notes, text])

    def ended(self, name: str, last_line: str) -> None:
        log.warning("%s has ended: %s", name, last_line)
        self._write(ended={**self._state.ended, name: last_line})

    def restarted(self, name: str) -> None:
        restarts = self._state.restarts
        ended = {other: line for other, line in self._state.ended.items() if other != name}
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
        """Write the state. A full disk must not end the cluster; the next report may be written again."""
        self._state = replace(self._state, **changes)
        try:
            self._folder.write(self._state)
        except OSError as problem:
            log.error("its state cannot be written: %s", problem)
