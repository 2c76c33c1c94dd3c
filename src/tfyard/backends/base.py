"""The protocols that a backend implements: where a job's status is kept, and where its pods run.

They are what one pass of the spine needs. What people ask of a job (its state, logs, files, actions) is
`sdk/place.py`."""

from collections.abc import Sequence
from typing import Protocol

from tfyard.model import Action, Decision, Job, Observed, Outcome, Status


class JobStore(Protocol):
    """Where a job's status is kept."""

    async def report(self, job: Job, before: Status, decision: Decision) -> None:
        """Store the decision's status (skipped if nothing changed), then record its events."""


class PodRunner(Protocol):
    """Where a job's pods run."""

    async def observe(self, job: Job) -> Observed:
        """What is there now, with the stored status."""

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:
        """Do the actions, as far as possible. Repeating it is harmless, because names are deterministic."""
