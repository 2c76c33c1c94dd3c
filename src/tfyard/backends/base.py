"""The protocols that a backend implements: where a job's status is kept, and where its pods run.

One pass of the spine needs no more. The commands on a job (its state, logs, files, actions) are in
`sdk/place.py`."""

from collections.abc import Sequence
from typing import Protocol

from tfyard.model import Action, Decision, Job, Observed, Outcome, Status


class JobStore(Protocol):
    """The place that keeps a job's status."""

    async def report(self, job: Job, before: Status, decision: Decision) -> None:
        """Stores the decision's status (skipped if nothing changed), then records its events."""


class PodRunner(Protocol):
    """The place where a job's pods run."""

    async def observe(self, job: Job) -> Observed:
        """The pods and other objects that exist now, with the stored status."""

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:
        """Does the actions, as far as possible. Repeating it is harmless, because names are deterministic."""
