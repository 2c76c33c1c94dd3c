"""How often counts are worth a write.

A role of a thousand pods that comes up changes its counts a thousand times. They are written when they have come
to rest, which is within a second of the last change, and now and then while they have not; and ever more rarely
for a job that goes on changing, so that what a job costs does not grow with how long it takes.
"""

from msgspec import Struct

from tfyard.model import Status

QUIET, LONGEST_QUIET = 0.4, 2.0
"""Seconds without a change that count as rest: at first, and for a job that was written about often."""
PROMPT = 2
"""So many writes of counts are prompt; each later one waits twice as long as the one before."""
RESTLESS = 12
"""Counts that never rest are written after so many times the rest that they are not given."""


class Waiting(Struct, frozen=True):
    status: Status
    since: float
    """When it first differed from what is written."""
    changed: float
    """When it became what it is now."""


class Pace:
    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._written: dict[str, int] = {}

    def hold(self, uid: str, status: Status, now: float) -> bool:
        """Whether this status of a job should wait; if not, it is taken for written."""
        before = self._waiting.get(uid)
        if before is None or before.status != status:
            self._waiting[uid] = Waiting(status, before.since if before else now, now)
        if self.left(uid, now):
            return True
        self._written[uid] = self._written.get(uid, 0) + 1
        del self._waiting[uid]
        return False

    def left(self, uid: str, now: float) -> float | None:
        """Seconds until the status that waits is due; None if none waits."""
        waiting = self._waiting.get(uid)
        if waiting is None:
            return None
        quiet = min(LONGEST_QUIET, QUIET * 2.0 ** max(0, self._written.get(uid, 0) - PROMPT))
        return max(0.0, min(waiting.changed + quiet, waiting.since + RESTLESS * quiet) - now)

    def release(self, uid: str) -> None:
        """More than counts changed, so all of it is written now."""
        self._waiting.pop(uid, None)

    def forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._written.pop(uid, None)
