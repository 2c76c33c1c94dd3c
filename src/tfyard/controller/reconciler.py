"""Reconciles one job: reads it, runs one pass of the spine, and says when the job must be reconciled again."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from tfyard import planner
from tfyard.backends.kubernetes.cache import Cache, JobKey
from tfyard.backends.kubernetes.runner import ClusterRunner
from tfyard.backends.kubernetes.store import ClusterStore
from tfyard.backends.kubernetes.views import JobView
from tfyard.errors import Invalid
from tfyard.model import Job
from tfyard.spine import Pass, reconcile

from .reporting import Reporter
from .unreadable import UnreadableStatuses, read


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
