"""The worker loop: takes a job from the queue, reconciles it, and puts it back when it must be reconciled
again."""

import asyncio
import logging
import time
from collections.abc import Callable

from tfyard import kube
from tfyard.backends.kubernetes.cache import Cache, JobKey
from tfyard.backends.kubernetes.unreadable import describe, problem_of
from tfyard.backends.kubernetes.writes import NotLeading
from tfyard.model import shortened
from tfyard.model.names import JOB_KINDS

from . import log_format
from .metrics import Metrics
from .queue import Queue
from .reconciler import Reconciler, Result

log = logging.getLogger(__name__)

AFTER = 0.01
"""Seconds added to a wait, so that its end has certainly passed."""


class Worker:
    def __init__(
        self,
        queue: Queue[JobKey],
        cache: Cache,
        reconciler: Reconciler,
        may_write: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        self._queue, self._cache, self._reconciler = queue, cache, reconciler
        self._may_write, self._metrics = may_write, metrics
        self._deferred: set[JobKey] = set()
        self._reasons: dict[JobKey, str] = {}
        """Reason of each job's last requeue."""

    async def run(self) -> None:
        """Reconcile jobs until cancelled; as many jobs are reconciled at the same time as workers run."""
        while True:
            key = await self._queue.get()
            started = time.monotonic()
            with log_format.for_job(key.namespace, key.name):
                try:
                    await self._process(key)
                except (kube.KubeError, NotLeading) as problem:
                    self._requeue(key, problem)
                except asyncio.CancelledError:
                    if (task := asyncio.current_task()) and task.cancelling():
                        raise
                    self._requeue(key, "a request was cancelled")  # the worker itself goes on
                except Exception as error:  # an error in one job must not end the work on all others
                    seconds, kind = self._queue.retry(key), JOB_KINDS[key.group]
                    if self._cache.unreadable.is_news(kind, key, describe(error)):
                        log.exception("requeue in %.1f s: unexpected error", seconds)
                finally:
                    self._forget_deleted(key)
                    self._queue.done(key)
                    self._metrics.reconcile_seconds.observe(time.monotonic() - started)

    def enqueue_deferred(self) -> None:
        """Enqueue jobs that changed while this operator was not the leader: if that was short, no other operator
        became the leader and reconciled them."""
        while self._deferred:
            self._queue.add(self._deferred.pop())

    def forget(self, key: JobKey) -> None:
        """Drop the back-off of a deleted job: a new job of its name may exist already, which has never failed."""
        self._queue.reset_backoff(key)
        self._forget_deleted(key)

    def _forget_deleted(self, key: JobKey) -> None:
        """Forget a deleted job; also called after a reconcile, during which the job may have been deleted."""
        if key not in self._cache.jobs:
            self._queue.forget(key)
            self._deferred.discard(key)
            self._reasons.pop(key, None)

    async def _process(self, key: JobKey) -> None:
        view = self._cache.jobs.get(key)
        if view is None or problem_of(view):
            return
        if not self._may_write():
            self._deferred.add(key)
            await self._reconciler.stand_by(key, view)
        else:
            self._follow(key, await self._reconciler.reconcile(key, view))

    def _follow(self, key: JobKey, result: Result) -> None:
        if result.has_progress:
            self._queue.reset_backoff(key)
            self._reasons.pop(key, None)
        for seconds in result.after:
            self._queue.add(key, seconds + AFTER)
        if result.at_once:
            self._queue.add(key)
        elif result.retry:
            self._requeue(key, result.retry)

    def _requeue(self, key: JobKey, reason: object) -> None:
        """Requeue a job with back-off, and log a reason once: a server may refuse the same for days."""
        seconds, text = self._queue.retry(key, kube.retry_after(reason)), shortened(str(reason))
        if self._reasons.get(key) != text:
            log.info("requeue in %.1f s: %s", seconds, text)
        self._reasons[key] = text
