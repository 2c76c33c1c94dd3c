"""The worker loop: takes a job from the queue, reconciles it, and puts it back when it must be reconciled
again."""

import logging
import time
from collections.abc import Callable

from tfyard import kube
from tfyard.backends.kubernetes.cache import Cache, JobKey
from tfyard.backends.kubernetes.writes import NotLeading

from . import log_format
from .metrics import Metrics
from .queue import Queue
from .reconciler import Reconciler, Result

log = logging.getLogger(__name__)

AFTER = 0.01
"""Seconds added to a time that is waited for, so that it is surely over."""


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

    async def run(self) -> None:
        """Until cancelled; several of these reconcile as many jobs at the same time."""
        while True:
            key = await self._queue.get()
            began = time.monotonic()
            with log_format.for_job(key.namespace, key.name):
                try:
                    await self._process(key)
                except (kube.KubeError, NotLeading) as problem:
                    self._requeue(key, problem)
                except Exception:  # a job that we do not understand must not end the work on all others
                    log.exception("requeue in %.1f s: unexpected error", self._queue.retry(key))
                finally:
                    self._forget_deleted(key)
                    self._queue.done(key)
                    self._metrics.reconcile_seconds.observe(time.monotonic() - began)

    def enqueue_deferred(self) -> None:
        """Enqueue what came while this operator could not write: a lapse may be too short for others to notice."""
        while self._deferred:
            self._queue.add(self._deferred.pop())

    def forget(self, key: JobKey) -> None:
        """The job is deleted; a new one of its name may be here already, which has never failed."""
        self._queue.reset_backoff(key)
        self._forget_deleted(key)

    def _forget_deleted(self, key: JobKey) -> None:
        """Also after a reconcile, during which the job may have been deleted."""
        if key not in self._cache.jobs:
            self._queue.forget(key)
            self._deferred.discard(key)

    async def _process(self, key: JobKey) -> None:
        view = self._cache.jobs.get(key)
        if view is None:
            return
        if not self._may_write():
            self._deferred.add(key)
            await self._reconciler.stand_by(key, view)
        else:
            self._follow(key, await self._reconciler.reconcile(key, view))

    def _follow(self, key: JobKey, result: Result) -> None:
        if result.has_progress:
            self._queue.reset_backoff(key)
        for seconds in result.after:
            self._queue.add(key, seconds + AFTER)
        if result.at_once:
            self._queue.add(key)
        elif result.retry:
            self._requeue(key, result.retry)

    def _requeue(self, key: JobKey, reason: object) -> None:
        log.info("requeue in %.1f s: %s", self._queue.retry(key), reason)
