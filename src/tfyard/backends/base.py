"""The protocols that a backend implements: where a job's status is kept, where its pods run, where it is read."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from tfyard.model import Action, Decision, Job, Observed, Outcome, Status, Task
from tfyard.model.summary import JobSummary, RecordedEvent

T = TypeVar("T")


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


class Read(Struct, Generic[T], frozen=True):
    """One read as a value: what to request, and how to decode the answer. Commands that print once send it by a
    synchronous transport, which starts faster; others by an async one."""

    request: Any
    """In the form that the backend's transports take."""
    decode: Callable[[bytes], T]


class JobReader(Protocol):
    """Where jobs are read: a cluster, or the runs of this machine."""

    def list_jobs(self) -> Read[list[JobSummary]]: ...

    def get_job(self, name: str) -> Read[JobSummary]: ...

    def list_events(self, name: str) -> Read[list[RecordedEvent]]:
        """Oldest first."""

    def watch(self) -> AsyncIterator[list[JobSummary]]:
        """All jobs, now and after each change."""

    def follow(self, name: str, task: Task) -> AsyncIterator[str]:
        """The lines of a task's log, as they are written, until the task has ended."""
