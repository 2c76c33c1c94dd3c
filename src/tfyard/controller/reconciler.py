"""Reconciles one job: reads it, runs one pass of the spine, and says when the job must be reconciled again.

Of a job whose spec is invalid, all that can be read holds. A job whose status is invalid is left as it is.
"""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats, planner
from tfyard.backends.kubernetes.cache import Cache, JobKey
from tfyard.backends.kubernetes.runner import ClusterRunner
from tfyard.backends.kubernetes.store import ClusterStore
from tfyard.backends.kubernetes.views import JobView
from tfyard.errors import Invalid
from tfyard.model import Event, Job, Manifest, Problem, format_path
from tfyard.spine import Pass, reconcile

from .reporting import Reporter

log = logging.getLogger(__name__)

EVENTS_KEPT = 3600.0
"""Seconds after which servers delete events, unless configured otherwise; what is still true is reported again."""
TOO_DEEP = Problem(("spec",), "is nested too deeply to be read")


class Result(Struct, frozen=True, kw_only=True):
    """What the queue does with the job next."""

    retry: str = ""
    """Why it must be reconciled again with a back-off."""
    at_once: bool = False
    """It must be reconciled again without a delay."""
    has_progress: bool = False
    """Something was done, so an earlier back-off is over."""
    after: tuple[float, ...] = ()
    """Seconds until time alone is a reason to reconcile it again."""


class Reconciler:
    def __init__(
        self,
        cache: Cache,
        store: ClusterStore,
        runner: ClusterRunner,
        site: planner.Site,
        reporter: Reporter,
        clock: Callable[[], datetime],
    ) -> None:
        self._cache, self._store, self._runner, self._site = cache, store, runner, site
        self._reporter, self._clock = reporter, clock
        self._unreadable = UnreadableStatuses(reporter.event)
        self._jobs: dict[JobKey, tuple[JobView, Job]] = {}

    async def reconcile(self, key: JobKey, view: JobView) -> Result:
        job = self._read(key, view)
        gone = self._cache.pods.gone(job.uid)
        try:
            done = await reconcile(job, self._store, self._runner, self._site, self._clock())
        except Invalid as error:  # in its status, not in its spec
            self._unreadable.leave(job, view, error.problems)
            return Result()
        self._reporter.actions_done(job, done.outcome.done)
        if done.outcome.retry or done.outcome.is_unblocked:
            return _again(done)
        self._unreadable.forget(job.uid)
        self._cache.pods.prune(job.uid, gone)
        if done.decision.status.is_finished:
            self._jobs.pop(key, None)
            self._store.forget(job.uid)
            self._runner.forget(job.uid)
        after = (done.decision.wake_after, self._store.due_in(job.uid))
        return Result(
            has_progress=True,
            at_once=bool(gone),  # now that their names are free
            after=tuple(seconds for seconds in after if seconds is not None),
        )

    async def stand_by(self, key: JobKey, view: JobView) -> None:
        """Instead of `reconcile`, while another operator leads: what it has written of deleted pods need not be
        remembered here any longer."""
        gone = self._cache.pods.gone(view.metadata.uid)
        if not gone:
            return
        with suppress(Invalid):
            job = self._read(key, view)
            observed = await self._runner.observe(job)
            decision = planner.decide(job, observed, self._site, self._clock())
            if decision.status.tasks == observed.status.tasks:
                self._cache.pods.prune(job.uid, gone)

    def forget(self, key: JobKey, uid: str) -> None:
        """The job is deleted."""
        self._jobs.pop(key, None)
        self._unreadable.forget(uid)
        self._runner.forget(uid)
        self._store.forget(uid)

    def _read(self, key: JobKey, view: JobView) -> Job:
        """Once, as long as its spec stays: its pods change often, its spec hardly ever."""
        known = self._jobs.get(key)
        if known is None or not known[0].is_same_job(view):
            known = self._jobs[key] = (view, read(view))
        return known[1]


def _again(done: Pass) -> Result:
    outcome, wake = done.outcome, done.decision.wake_after
    return Result(
        retry=outcome.retry,
        at_once=outcome.is_unblocked,
        has_progress=bool(outcome.done) or outcome.is_unblocked,
        after=() if wake is None else (wake,),
    )


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
