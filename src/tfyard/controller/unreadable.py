"""Jobs that cannot be read: a spec that is invalid fails the job; a status that is invalid is left as it is."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from tfyard import formats, planner
from tfyard.backends.base import JobStore
from tfyard.backends.kubernetes.views import JobView
from tfyard.errors import Invalid
from tfyard.model import Decision, Event, Job, Problem, RunPolicy, format_path

log = logging.getLogger(__name__)

EVENTS_KEPT = 3600.0
"""Seconds after which servers delete events, unless configured otherwise; what is still true is reported again."""


class UnreadableJobs:
    def __init__(self, store: JobStore, record: Callable[[Job, Event], None]) -> None:
        self._store, self._record = store, record
        self._reported: dict[str, tuple[Event, float]] = {}

    async def fail(self, view: JobView, problems: tuple[Problem, ...]) -> None:
        """The spec cannot be read: the job fails, with everything that is wrong, once."""
        job = _outline(view)
        try:
            before = formats.load_status(view.status_document())
        except Invalid as error:
            self.leave(job, view, error.problems)
            return
        if before.is_finished or planner.is_ignored(job, view.metadata.deletion_timestamp is not None):
            return
        after, event = planner.refuse(job, before, _texts(problems), datetime.now(UTC))
        await self._store.report(job, before, Decision(status=after, events=(event,)))

    def leave(self, job: Job, view: JobView, problems: tuple[Problem, ...]) -> None:
        """The status cannot be read: nothing is done, and an event says so, not at every reconcile. When somebody
        repairs it, the watch brings it back."""
        if planner.is_ignored(job, view.metadata.deletion_timestamp is not None):
            return
        event, now = planner.status_unreadable(job, _texts(problems)), time.monotonic()
        before, since = self._reported.get(job.uid, (None, now))
        if event != before or now - since > EVENTS_KEPT:
            self._reported[job.uid] = event, now
            log.warning("job ignored, its status cannot be read: %s", "; ".join(_texts(problems)))
            self._record(job, event)

    def forget(self, uid: str) -> None:
        """The job can be read again, or is deleted."""
        self._reported.pop(uid, None)


def load(view: JobView) -> Job:
    """Invalid with all problems, if it cannot be read."""
    try:
        return formats.load(view.document())
    except RecursionError:
        raise Invalid([Problem(("spec",), "is nested too deeply to be read")]) from None


def _outline(view: JobView) -> Job:
    """What is known of a job without its spec."""
    return Job(
        name=view.metadata.name,
        namespace=view.metadata.namespace,
        uid=view.metadata.uid,
        generation=view.metadata.generation,
        api_version=view.api_version,
        kind=view.kind,
        run_policy=RunPolicy(managed_by=_managed_by(view)),
    )


def _managed_by(view: JobView) -> str | None:
    """Which controller the job is for, though nothing else of its spec may be readable."""
    try:
        spec = view.document()["spec"]
    except RecursionError:
        return None
    policy = spec.get("runPolicy") if isinstance(spec, dict) else None
    found = policy.get("managedBy") if isinstance(policy, dict) else None
    return found if isinstance(found, str) else None


def _texts(problems: tuple[Problem, ...]) -> list[str]:
    return [f"{format_path(p.path)}: {p.message}" + (f" ({p.fix})" if p.fix else "") for p in problems]
