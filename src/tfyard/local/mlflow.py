"""A run on this machine at MLflow: begun with the run, told its end, and gone on with by `tfyard resume`.

The process that reports reads metrics.jsonl, so whatever the server does, the run has nothing to do with it.
"""

import asyncio
from collections.abc import Callable

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import recording
from tfyard.local.prepared import PreparedRun
from tfyard.model import MLflow
from tfyard.model.run_record import RunRecord
from tfyard.tracking.orders import TrackedRun, TrackingEnd, kept
from tfyard.tracking.tracker import Tracker, order

Note = Callable[[str, str], None]
METRICS = "metrics.jsonl"


class RunAtMLflow:
    """`note`: says something to the user, with its level."""

    def __init__(self, prepared: PreparedRun, uri: str, directory: RunDirectory, note: Note) -> None:
        self._uri, self._note, self._is_known = uri, note, False
        asked, before = prepared.settings, _before(prepared, directory)
        source = asked.module or asked.beside or asked.target
        with (directory.path / METRICS).open("a+b") as feed:
            self._tracker = Tracker(
                order(prepared.job, source, "LOCAL", asked.variables),
                feed=feed.fileno(),
                uri=uri,
                name=directory.name,
                run=before.run if before and before.order.uri == uri else "",
                directory=str(directory.path.resolve()),
                record=str(directory.path.resolve() / recording.FILE),
                at_loss="Killed",
            )

    async def begun(self) -> MLflow | None:
        """The same as `look`, after a moment in which the server may answer."""
        await asyncio.to_thread(self._tracker.wait_for_run)
        return self.look()

    def look(self) -> MLflow | None:
        """Says what stands in the way, once. The result is the run at the server, for the task that decides, once
        it is known."""
        if text := self._tracker.problem():
            self._note("warning", f"{text}; the training goes on")
        if self._is_known or not self._tracker.run:
            return None
        self._is_known = True
        self._note("info", f"MLflow: {self._tracker.page}")
        return MLflow(uri=self._uri, run=self._tracker.run)

    async def end(self, record: RunRecord) -> None:
        tags = {"tfyard.phase": record.phase, "tfyard.exit_code": str(record.exit_code)}
        is_whole = await asyncio.to_thread(self._tracker.end, TrackingEnd(record.phase, tags))
        self.look()
        if not is_whole and not self._tracker.has_told:
            later = "the next run of this folder that reports to it sends the rest"
            self._note("warning", f"MLflow at {self._uri} is slow: {later}")

    def close(self) -> None:
        self._tracker.close()


def _before(prepared: PreparedRun, directory: RunDirectory) -> TrackedRun | None:
    """What is kept of the run that this one continues."""
    return kept(directory.path.parent / prepared.resumes) if prepared.resumes else None
