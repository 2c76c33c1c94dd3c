"""The two narrow protocols that a place must offer. Everything else about it is its own affair."""

from collections.abc import Sequence
from typing import Protocol

from tfyard.model import Action, Decision, Job, Observed, Status


class Halt(Exception):
    """A pass that did not go to its end as planned; `done` is what was done of it all the same."""

    wake_after: float | None = None
    """Seconds until time alone changes the answer, as the decision says."""

    def __init__(self, message: str, done: Sequence[Action] = ()) -> None:
        super().__init__(message)
        self.done = done


class JobStore(Protocol):
    """Where a job's status is kept."""

    async def report(self, job: Job, before: Status, decision: Decision) -> None:
        """Store the decision's status (skipped if nothing changed), then tell its events."""


class PodRunner(Protocol):
    """Where a job's pods live."""

    async def observe(self, job: Job) -> Observed:
        """What is there now, the stored status included."""

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Do what was decided; Halt if not all of it could be done. Doing it twice does no harm: names are
        deterministic."""
