"""Jobs that cannot be read: of an invalid spec all that can be read holds; an invalid status is left as it is."""

import logging
import time
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from tfyard import formats, planner
from tfyard.backends.kubernetes.views import JobView
from tfyard.model import Event, Job, Manifest, Problem, format_path

log = logging.getLogger(__name__)

EVENTS_KEPT = 3600.0
"""Seconds after which servers delete events, unless configured otherwise; what is still true is reported again."""
TOO_DEEP = Problem(("spec",), "is nested too deeply to be read")


def read(view: JobView) -> Job:
    """The job; if its spec is invalid, with its `problems`."""
    try:
        document = view.document()
        checked = formats.check(document)
    except RecursionError:
        document = view.shallow_document()
        return _partly(view, document, formats.check(document).job, [TOO_DEEP])
    if checked.job is not None and not checked.errors:
        return checked.job
    return _partly(view, document, checked.job, checked.errors)


def _partly(view: JobView, document: Manifest, found: Job | None, problems: Iterable[Problem]) -> Job:
    job = found or _outline(view)
    policy = replace(job.run_policy, managed_by=_managed_by(document["spec"]))
    return replace(job, run_policy=policy, problems=_texts(problems))


class UnreadableStatuses:
    def __init__(self, record: Callable[[Job, Event], None]) -> None:
        self._record = record
        self._reported: dict[str, tuple[Event, float]] = {}

    def leave(self, job: Job, view: JobView, problems: Iterable[Problem]) -> None:
        """Nothing is done, and an event says so, not at every reconcile. When somebody repairs the status, the
        watch brings it back."""
        if planner.is_ignored(job, view.metadata.deletion_timestamp is not None):
            return
        texts, now = _texts(problems), time.monotonic()
        event = planner.status_unreadable(job, texts)
        before, since = self._reported.get(job.uid, (None, now))
        if event != before or now - since > EVENTS_KEPT:
            self._reported[job.uid] = event, now
            log.warning("job ignored, its status cannot be read: %s", "; ".join(texts))
            self._record(job, event)

    def forget(self, uid: str) -> None:
        """The status can be read again, or the job is deleted."""
        self._reported.pop(uid, None)


def _outline(view: JobView) -> Job:
    """What is known of a job without its spec."""
    return Job(
        name=view.metadata.name,
        namespace=view.metadata.namespace,
        uid=view.metadata.uid,
        generation=view.metadata.generation,
        api_version=view.api_version,
        kind=view.kind,
    )


def _managed_by(spec: object) -> str | None:
    """As it is written, also if that is no controller that we know: then the job is not ours."""
    for policy in (spec, spec.get("runPolicy") if isinstance(spec, dict) else None):
        found = policy.get("managedBy") if isinstance(policy, dict) else None
        if isinstance(found, str):
            return found
    return None


def _texts(problems: Iterable[Problem]) -> tuple[str, ...]:
    return tuple(f"{format_path(p.path)}: {p.message}" + (f" ({p.fix})" if p.fix else "") for p in problems)
