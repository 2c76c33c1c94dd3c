"""When a status is worth its write.

A role of a thousand pods that comes up changes its counts a thousand times. They are written when they have come
to rest, which is within a second of the last change, and now and then while they have not; and ever more rarely
for a job that goes on changing, so that what a job costs does not grow with how long it takes. That a job has
begun or runs waits for no rest, but long enough for what follows at once to be in the same write.
"""

from math import inf

from msgspec import Struct

from tfyard.model import Decision, Status

QUIET, LONGEST_QUIET = 0.4, 2.0
"""Seconds without a change that count as rest: at first, and for a job that was written about often."""
PROMPT = 2
"""So many writes of counts are prompt; each later one waits twice as long as the one before."""
RESTLESS = 12
"""Counts that never rest are written after so many times the rest that they are not given."""
SOON, GIVE_WAY, LULL = 0.4, 5.0, 1.0
"""Seconds after which it is told that a job has begun or runs; that this gives way when pods of others are being
made; and between two looks whether they still are."""


class Waiting(Struct, frozen=True):
    status: Status
    since: float
    """When it first differed from what is written."""
    due: float


class Pace:
    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._written: dict[str, int] = {}

    def holds(self, uid: str, decision: Decision, now: float, *, in_rush: bool = False) -> bool:
        """Whether this status of a job should wait; if not, it is taken for written."""
        if decision.urgency == "now":
            self.release(uid)
            return False
        before = self._waiting.get(uid)
        if before is None or before.status != decision.status:
            before = self._waiting[uid] = self._wait(uid, decision, before, now)
        if now < before.due:
            return True
        if decision.urgency == "soon" and in_rush and now < before.since + GIVE_WAY:
            self._waiting[uid] = Waiting(before.status, before.since, now + LULL)
            return True
        if decision.urgency == "at rest":
            self._written[uid] = self._written.get(uid, 0) + 1
        self.release(uid)
        return False

    def left(self, uid: str, now: float) -> float | None:
        """Seconds until the status that waits is due; None if none waits."""
        waiting = self._waiting.get(uid)
        return None if waiting is None else max(0.0, waiting.due - now)

    def release(self, uid: str) -> None:
        """All of it is written, or nothing of it is true any more."""
        self._waiting.pop(uid, None)

    def forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._written.pop(uid, None)

    def _wait(self, uid: str, decision: Decision, before: Waiting | None, now: float) -> Waiting:
        since = before.since if before else now
        if decision.urgency == "soon":
            return Waiting(decision.status, since, min(now + SOON, before.due if before else inf))
        quiet = min(LONGEST_QUIET, QUIET * 2.0 ** max(0, self._written.get(uid, 0) - PROMPT))
        return Waiting(decision.status, since, min(now + quiet, since + RESTLESS * quiet))
