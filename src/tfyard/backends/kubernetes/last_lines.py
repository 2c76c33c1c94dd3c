"""Looks at logs for decisions: the last line of one container, through the apiserver, from its kubelet.

A kubelet may be slow, or not answer at all. So a pass never waits for a log: a decision names the one that the
next decision needs, the look is taken beside the passes, and its answer reconciles the job again. What was seen is
only in the memory of the operator, which looks again after a restart.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from tfyard.kube import Client, Forbidden, KubeError, requests
from tfyard.logs.lines import time_of
from tfyard.logs.terminal_text import without_colours
from tfyard.model import Job, LastLine, LogLook, shortened

from .cache import JobKey
from .fair_slots import FairSlots

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Most looks in flight, divided by fair_slots.py: a slow kubelet holds up few, and none of another tenant."""
TIMEOUT = 10.0
"""Seconds until a look is given up."""
LONGEST_ANSWER = 2048
"""Bytes of the last line that are asked for."""


class LastLines:
    """`on_answer` is called when the look for a job has ended."""

    def __init__(self, client: Client, on_answer: Callable[[JobKey], None]) -> None:
        self._client, self._on_answer = client, on_answer
        self._known: dict[str, dict[str, LastLine]] = {}
        """Uid of a job -> uid of the pod that was looked at -> what was seen."""
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._problems: dict[str, str] = {}
        """Uid of a job whose log cannot be read -> why, as it was logged."""
        self._slots = FairSlots(AT_ONCE)

    def of(self, uid: str) -> dict[str, LastLine]:
        return self._known.get(uid, {})

    def look(self, key: JobKey, job: Job, wanted: LogLook | None) -> None:
        """Begin the look that a decision wants; nothing, if one is under way."""
        if wanted is not None and job.uid not in self._looks:
            self._looks[job.uid] = asyncio.create_task(self._look(key, job, wanted))

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)
        self._problems.pop(uid, None)
        if look := self._looks.pop(uid, None):
            look.cancel()

    async def run(self) -> None:
        """Wait until the operator ends, and with it the looks: their connections must not outlive its client."""
        try:
            await asyncio.Event().wait()
        finally:
            looks = [*self._looks.values()]
            for uid in [*self._looks]:
                self.forget(uid)
            await asyncio.gather(*looks, return_exceptions=True)

    async def _look(self, key: JobKey, job: Job, wanted: LogLook) -> None:
        async with self._slots.slot(job.namespace, job.uid):
            seen = await self._read(job, wanted)
        before = self.of(job.uid).get(wanted.uid)
        self._known[job.uid] = {wanted.uid: _with_memory(seen, before)}
        self._looks.pop(job.uid, None)
        self._on_answer(key)

    async def _read(self, job: Job, wanted: LogLook) -> LastLine:
        now = self._client.now()
        try:
            async with asyncio.timeout(TIMEOUT):
                line = last_line(await self._answer(job, wanted), now)
        except Forbidden as problem:
            self._log_once(job, wanted, str(problem))
            return LastLine(seen=now, problem="forbidden")
        except (KubeError, TimeoutError) as problem:
            self._log_once(job, wanted, str(problem) or "no answer")
            return LastLine(seen=now, problem="unreadable")
        except Exception:  # about this log: the next look comes, and the job goes on
            log.exception("cannot read the log of pod %s/%s", job.namespace, wanted.pod)
            return LastLine(seen=now, problem="unreadable")
        self._problems.pop(job.uid, None)
        return line

    def _log_once(self, job: Job, wanted: LogLook, problem: str) -> None:
        """Log why a log cannot be read, but not at every look: it may be so for days."""
        problem = shortened(problem)
        if self._problems.get(job.uid) != problem:
            log.info("cannot read the log of pod %s/%s: %s", job.namespace, wanted.pod, problem)
        self._problems[job.uid] = problem

    async def _answer(self, job: Job, wanted: LogLook) -> bytes:
        """One request, as a stream: these are never repeated, and take no connection from what must be written."""
        asked = {"container": wanted.container, "tailLines": "1", "limitBytes": str(LONGEST_ANSWER)}
        path = requests.PODS.path(job.namespace, wanted.pod, "log")
        request = requests.get(path, {**asked, "timestamps": "true"})
        async with self._client.stream(request, TIMEOUT) as parts:
            return b"".join([part async for part in parts])


def last_line(answer: bytes, now: datetime) -> LastLine:
    """The last line of a log with timestamps. A kubelet that cannot read the log says so in a line without one."""
    line = answer.rstrip().rpartition(b"\n")[2]
    stamp, _, text = line.decode("utf-8", "replace").partition(" ")
    if not line:
        return LastLine(seen=now)
    at = time_of(stamp)
    if at is None:
        return LastLine(seen=now, problem="unreadable")
    shown = without_colours(text.rstrip().rpartition("\r")[2]).strip()
    return LastLine(seen=now, at=at, text="".join(filter(str.isprintable, shown)))


def _with_memory(seen: LastLine, before: LastLine | None) -> LastLine:
    """A look that shows no line keeps the one before: a kubelet reads only the newest file of a rotated log."""
    if before is None or seen.at is not None:
        return seen
    return replace(seen, at=before.at, text=before.text)
