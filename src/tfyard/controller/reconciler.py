"""Reconciles one job: reads it, runs one pass of the spine, and returns when the job must be reconciled again.

If a job's spec is invalid, its readable parts hold. A job whose status is invalid is left as it is.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from msgspec import Struct

from tfyard import planner
from tfyard.backends.kubernetes.cache import Cache, JobKey
from tfyard.backends.kubernetes.runner import ClusterRunner
from tfyard.backends.kubernetes.store import ClusterStore
from tfyard.backends.kubernetes.unreadable import UnreadableObjects
from tfyard.backends.kubernetes.views import StoredJob
from tfyard.errors import Invalid
from tfyard.model import Event, Job, Problem, Status
from tfyard.spine import Pass, reconcile

from .job_reading import JobReader, texts
from .reporting import Reporter

EVENTS_KEPT = 3600.0
"""Seconds after which servers delete events by default; a problem that persists is then reported again."""


class Result(Struct, frozen=True, kw_only=True):
    """When the queue reconciles the job again."""

    retry: str = ""
    """Why the job must be reconciled again with a back-off; empty: it need not."""
    at_once: bool = False
    """Whether the job must be reconciled again without a delay."""
    has_progress: bool = False
    """Whether the pass or one of its actions succeeded, so that an earlier back-off is over."""
    after: tuple[float, ...] = ()
    """Seconds until the passing of time is a reason to reconcile the job again."""


class Reconciler:
    def __init__(
        self,
        jobs: JobReader,
        cache: Cache,
        store: ClusterStore,
        runner: ClusterRunner,
        site: planner.Site,
        reporter: Reporter,
    ) -> None:
        self._cache, self._store, self._runner, self._site = cache, store, runner, site
        self._jobs, self._reporter, self._clock = jobs, reporter, jobs.now
        self._unreadable = UnreadableStatuses(cache.unreadable, reporter.event)

    async def reconcile(self, key: JobKey, view: StoredJob) -> Result:
        async with self._jobs.job(key, view) as job:
            return await self._reconcile(key, view, job)

    async def _reconcile(self, key: JobKey, view: StoredJob, job: Job) -> Result:
        gone = self._cache.pods.gone(job.as_owner)
        try:
            done = await reconcile(job, self._store, self._runner, self._site, self._clock())
        except Invalid as error:  # in its status, not in its spec
            self._unreadable.leave(job, view, error.problems)
            self._jobs.forget(key)
            return Result()
        self._cache.unreadable.note(job.kind, key, "")
        if not _is_active(job, view, done.decision.status):
            self._jobs.forget(key)
        self._runner.last_lines.look(key, job, done.decision.look)
        self._reporter.actions_done(job, done.outcome)
        if done.outcome.retry or done.outcome.is_unblocked:
            return _again(done, self._runner.undone.due_in(job.uid))
        self._unreadable.forget(job.uid)
        self._cache.pods.prune(job.as_owner, gone)
        if done.decision.status.is_finished:
            self._store.forget(job.namespace, job.uid)
            self._runner.forget(job.uid)
        due = self._store.due_in(job.namespace, job.uid)
        after = (done.decision.wake_after, due)
        return Result(
            has_progress=due is None or bool(done.outcome.done),  # a status that waits may have been refused
            at_once=bool(gone),  # now that their names are free
            after=tuple(seconds for seconds in after if seconds is not None),
        )

    async def stand_by(self, key: JobKey, view: StoredJob) -> None:
        """Called instead of `reconcile` while another operator is the leader: once the status has what it must
        remember of deleted pods, they are dropped from the cache."""
        gone = self._cache.pods.gone(view.as_owner)
        if not gone:
            return
        with suppress(Invalid):
            async with self._jobs.job(key, view) as job:
                self._jobs.forget(key)  # the leader works on it; this operator may never read it again
                observed = await self._runner.observe(job)
                decision = planner.decide(job, observed, self._site, self._clock())
            if decision.status.tasks == observed.status.tasks:
                self._cache.pods.prune(job.as_owner, gone)

    def forget(self, key: JobKey, uid: str) -> None:
        """Drop the state of a deleted job."""
        self._jobs.forget(key)
        self._unreadable.forget(uid)
        self._runner.forget(uid)
        self._store.forget(key.namespace, uid)
        self._reporter.forget(uid)


def _is_active(job: Job, view: StoredJob, status: Status) -> bool:
    """Whether the job is likely to be reconciled often: only such jobs stay decoded."""
    is_left_alone = planner.is_ignored(job, view.metadata.deletion_timestamp is not None)
    return not (status.is_finished or job.run_policy.suspend or is_left_alone)


def _again(done: Pass, due: float | None) -> Result:
    """`due`: seconds until writes that must wait may be tried again."""
    outcome, after = done.outcome, (done.decision.wake_after, due)
    return Result(
        retry=outcome.retry,
        at_once=outcome.is_unblocked,
        has_progress=bool(outcome.done) or outcome.is_unblocked,
        after=tuple(seconds for seconds in after if seconds is not None),
    )


class UnreadableStatuses:
    def __init__(self, unreadable: UnreadableObjects, record: Callable[[Job, Event], None]) -> None:
        self._unreadable, self._record = unreadable, record
        self._reported: dict[str, tuple[Event, float]] = {}

    def leave(self, job: Job, view: StoredJob, problems: Iterable[Problem]) -> None:
        """Leave the job as it is and report that by an event, but not at every reconcile. When a user corrects the
        status, the watch enqueues the job."""
        if planner.is_ignored(job, view.metadata.deletion_timestamp is not None):
            return
        messages, now = texts(problems), time.monotonic()
        event = planner.status_unreadable(job, messages)
        before, since = self._reported.get(job.uid, (None, now))
        if event != before or now - since > EVENTS_KEPT:
            self._reported[job.uid] = event, now
            self._record(job, event)
        self._unreadable.note(job.kind, job, "; ".join(messages))

    def forget(self, uid: str) -> None:
        """Drop a job whose status can be read again, or that is deleted."""
        self._reported.pop(uid, None)
