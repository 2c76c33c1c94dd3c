"""Writes a job's status into the TFJob, by its status subresource, and decides when.

A role of a thousand pods that starts changes its counts a thousand times. They are written when they have not
changed for a while, which is within a second of the last change, or at long intervals if they never stop
changing; and at growing intervals for a job that goes on changing, so that its writes do not grow with its
duration. The start of a job is written soon, but late enough for changes that follow at once to be in the same
write; and a new job a little later, because most pods start within a moment. Meanwhile its state is Pending, by
the default of the CRD.
"""

import random
import time
from collections import deque
from collections.abc import Callable
from math import inf
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tfyard import kube
from tfyard.backends.base import JobStore
from tfyard.kube import requests
from tfyard.model import Decision, Job, Status
from tfyard.model.backoff import Backoff
from tfyard.views.tfjob_status import dump_status

from .cache import Cache, JobKey
from .resources import JOBS, Resources
from .writes import LONGEST_SILENT_WAIT, Writer

OnReport = Callable[[Job, Status, Decision], None]

QUIET, LONGEST_QUIET = 0.4, 2.0
"""Seconds without a change after which counts are written: at first, and for a job that was written often."""
PROMPT_WRITES = 2
"""Number of prompt writes of counts; each later one waits twice as long as the one before."""
LONGEST_UNQUIET = 12
"""Number of quiet periods after which counts are written that never stop changing."""
SOON, LATER = 0.4, 2.0
"""Seconds until the start of a job is written, and until a new job is whose pods do not run."""
SELDOM = 10.0
"""Seconds between two writes about a job that does not go well, if nothing else must be written."""
LONGEST_YIELD, CHECK_AGAIN = 30.0, 1.0
"""Longest wait of such a status while many pods are created, and the interval of checks, in seconds. A status
costs the server as much as two pods: written in between, statuses of the first jobs would delay the pods of the
last ones."""
REFUSED = Backoff(first=0.1, longest=60.0, jitter=0.2)
"""Waits between writes of a status that the server refuses."""
CROWD = 10
"""Number of new jobs that count as a crowd if their pods start within `LATER`. While a crowd starts, or many pods
are created, new jobs wait for their own pods; and for as long again, because a cluster that is slow with one thing
is slow with the next."""


class ClusterStore(JobStore):
    def __init__(
        self,
        writer: Writer,
        cache: Cache,
        resources: Resources,
        is_creating_many: Callable[[str], bool],
        on_report: OnReport,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer, self._cache, self._resources = writer, cache, resources
        self.is_creating_many, self._on_report = is_creating_many, on_report
        self._delays, self._clock = dict[str, StatusDelay](), clock
        """Namespace -> its statuses that wait: a tenant with a crowd of jobs delays no other."""
        self.refused = dict[str, RefusedStatus]()
        """Uid of a job -> the refusal of its last status. Such a job makes no progress: a status is stored before
        anything is done that depends on it."""

    async def report(self, job: Job, before: Status, decision: Decision) -> None:
        delay = self._delays.setdefault(job.namespace, StatusDelay())
        if decision.status == before:
            delay.release(job.uid)
            self.refused.pop(job.uid, None)
        elif delay.holds(
            job.uid, decision, self._clock(), is_creating_many=self.is_creating_many(job.namespace)
        ):
            return
        else:
            await self._write_or_note(job, decision.status)
            delay.written(job.uid, decision, self._clock())
        self._on_report(job, before, decision)

    def due_in(self, namespace: str, uid: str) -> float | None:
        """Seconds until a delayed status should be written; None if none is delayed."""
        delay = self._delays.get(namespace)
        return delay.due_in(uid, self._clock()) if delay else None

    def forget(self, namespace: str, uid: str) -> None:
        self.refused.pop(uid, None)
        if delay := self._delays.get(namespace):
            delay.forget(uid)
            if delay.is_empty:
                del self._delays[namespace]

    async def _write_or_note(self, job: Job, status: Status) -> None:
        """A conflict, or a job that was deleted, is nothing that an administrator must change."""
        refused = self.refused.get(job.uid)
        if refused is not None and self._clock() < refused.until:
            raise refused.problem.with_traceback(None)  # pods that change are no reason to send it again
        try:
            with kube.waiting_at_most(LONGEST_SILENT_WAIT):
                await self._write(job, status)
        except (kube.Conflict, kube.NotFound):
            raise
        except (kube.Refused, kube.ServerFault, kube.TooManyRequests) as problem:
            self.refused[job.uid] = self._refusal(problem, refused)
            raise
        self.refused.pop(job.uid, None)

    def _refusal(self, problem: kube.KubeError, before: "RefusedStatus | None") -> "RefusedStatus":
        backoff = (before.backoff if before else REFUSED).next()
        wait = max(backoff.delay(random.random()), kube.retry_after(problem))
        return RefusedStatus(problem, backoff, self._clock() + wait)

    async def _write(self, job: Job, status: Status) -> None:
        """Writes with the resourceVersion that the decision was based on: if another client was faster, the server
        answers Conflict, and the job is reconciled again. The subresource stores nothing but the status."""
        resource = self._resources.of_job(job)
        view = self._cache.jobs.get(JobKey(resource.group, job.namespace, job.name))
        if view is None:
            return  # deleted a moment ago
        meta = {"name": job.name, "namespace": job.namespace, "uid": job.uid}
        body = {
            "apiVersion": job.api_version,
            "kind": job.kind,
            "metadata": {**meta, "resourceVersion": view.metadata.resource_version},
            "status": dump_status(status),
        }
        request = requests.replace(resource.path(job.namespace, job.name, "status"), body)
        answer = await self._writer.send("update", "tfjobs/status", request, JOBS.one)
        self._cache.apply_job_response(resource, answer.keep())


class RefusedStatus(NamedTuple):
    problem: kube.KubeError
    backoff: Backoff
    until: float
    """When a status of this job may be sent again."""


class DelayedStatus(Struct, frozen=True):
    status: Status
    since: float
    """When the status first differed from the stored one."""
    due: float
    is_new: bool = False
    """Whether the job's pods do not run yet."""


class StatusDelay:
    """When the statuses of a namespace are written."""

    def __init__(self) -> None:
        self._starts: deque[float] = deque(maxlen=CROWD)
        self._rush_began, self._rush_until = 0.0, -inf
        self._waiting: dict[str, DelayedStatus] = {}
        self._written: dict[str, int] = {}
        self._explained: dict[str, float] = {}

    def holds(self, uid: str, decision: Decision, now: float, *, is_creating_many: bool = False) -> bool:
        """Whether this status of a job should wait. One that is due stays due until it is `written`: if the server
        refuses it, only the back-off of refusals decides when it is sent again."""
        if decision.urgency == "now":
            return False
        waiting = self._waiting.get(uid)
        if waiting is None or waiting.status != decision.status:
            if waiting is not None and waiting.is_new and decision.urgency == "soon":
                self._starts.append(now)
            waiting = self._waiting[uid] = self._wait(uid, decision, waiting, now)
        self._note_rush(now, is_creating_many=is_creating_many)
        if now < waiting.due:
            return True
        yields = now < self._rush_until if waiting.is_new else decision.urgency == "soon" and is_creating_many
        if yields and now < waiting.since + LONGEST_YIELD:
            again = LATER if waiting.is_new else CHECK_AGAIN
            self._waiting[uid] = replace(waiting, due=now + again)
            return True
        return False

    def _note_rush(self, now: float, *, is_creating_many: bool) -> None:
        is_crowd = len(self._starts) == CROWD and now - self._starts[0] <= LATER
        if is_creating_many or is_crowd:
            if now > self._rush_until:
                self._rush_began = now
            self._rush_until = now + max(LATER, now - self._rush_began)

    def written(self, uid: str, decision: Decision, now: float) -> None:
        """Notes that the server has accepted this status."""
        if decision.urgency == "at rest":
            self._written[uid] = self._written.get(uid, 0) + 1
        if decision.urgency == "seldom":
            self._explained[uid] = now
        self.release(uid)

    def due_in(self, uid: str, now: float) -> float | None:
        """Seconds until the status that waits is due; None if none waits."""
        waiting = self._waiting.get(uid)
        return None if waiting is None else max(0.0, waiting.due - now)

    def release(self, uid: str) -> None:
        """Drops the status that waits: it is written, or no longer true."""
        self._waiting.pop(uid, None)

    @property
    def is_empty(self) -> bool:
        return not (self._waiting or self._written or self._explained)

    def forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._written.pop(uid, None)
        self._explained.pop(uid, None)

    def _wait(self, uid: str, decision: Decision, before: DelayedStatus | None, now: float) -> DelayedStatus:
        since = before.since if before else now
        if decision.urgency in ("soon", "later"):
            is_new = decision.urgency == "later"
            due = min(now + (LATER if is_new else SOON), before.due if before else inf)
            return DelayedStatus(decision.status, since, due, is_new)
        if decision.urgency == "seldom":
            return DelayedStatus(
                decision.status, since, max(since + SOON, self._explained.get(uid, -inf) + SELDOM)
            )
        quiet = min(LONGEST_QUIET, QUIET * 2.0 ** max(0, self._written.get(uid, 0) - PROMPT_WRITES))
        return DelayedStatus(decision.status, since, min(now + quiet, since + LONGEST_UNQUIET * quiet))
