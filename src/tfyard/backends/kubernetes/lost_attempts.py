"""Jobs whose restarted pods come back without the annotation that says which attempt they are.

An admission policy or a webhook may remove annotations. Such a pod reads as attempt 0, which was given up, so it
would be deleted and created again for ever. Each such try waits longer than the one before, and the job says why.
"""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tfyard.model import Action, Create, Obstacle
from tfyard.model.backoff import Backoff
from tfyard.model.names import ATTEMPT

from .views import Meta

ATTEMPT_LOST = "AnnotationsRemoved"


class Lost(NamedTuple):
    obstacle: Obstacle
    backoff: Backoff
    until: float


class LostAttempts:
    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._jobs: dict[str, Lost] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def allowed(self, uid: str, actions: Sequence[Action]) -> Sequence[Action]:
        """Without the pods that must wait."""
        if self.waits(uid) is None:
            return actions
        return [action for action in actions if not is_restart(action)]

    def waits(self, uid: str) -> Obstacle | None:
        """Why the restarted pods of a job must wait, while they must."""
        lost = self._jobs.get(uid)
        return lost.obstacle if lost is not None and time.monotonic() < lost.until else None

    def review(self, uid: str, done: Iterable[Action], found: Obstacle | None) -> None:
        """After an attempt to create pods: it happened again, or it is over."""
        if found is not None:
            known = self._jobs.get(uid)
            backoff = (known.backoff if known else self._backoff).next()
            self._jobs[uid] = Lost(found, backoff, time.monotonic() + backoff.delay())
        elif any(map(is_restart, done)):
            self.forget(uid)

    def forget(self, uid: str) -> None:
        self._jobs.pop(uid, None)


def is_restart(action: Action) -> bool:
    return isinstance(action, Create) and _attempt(action) not in ("", "0")


def check(action: Create, meta: Meta) -> Obstacle | None:
    """Whether a pod has come back as the attempt that it was created as."""
    if not is_restart(action) or meta.annotations.get(ATTEMPT) == _attempt(action):
        return None
    lost = f"pod {action.name} lost its annotation {ATTEMPT} when it was created"
    return Obstacle(ATTEMPT_LOST, f"{lost}: an admission policy or webhook removes it, and must keep it")


def _attempt(action: Create) -> str:
    annotations = action.manifest["metadata"].get("annotations") or {}
    return str(annotations.get(ATTEMPT, "")) if action.kind == "Pod" else ""
