"""The two narrow protocols that a place must offer. Everything else about it is its own affair."""

from collections.abc import Sequence
from typing import Protocol

from tfyard.model import Action, Decision, Job, Observed, Status


class JobStore(Protocol):
    """Where a job's status is kept."""

    async def report(self, job: Job, before: Status, decision: Decision) -> None:
        """Store the decision's status (skipped if nothing changed), then tell its events."""


class PodRunner(Protocol):
    """Where a job's pods live."""

    async def observe(self, job: Job) -> Observed:
        """What is there now, the stored status included."""

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """Do what was decided. Doing it twice does no harm: names are deterministic."""
