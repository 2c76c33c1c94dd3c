"""What should happen now. A Decision is a value: it can be compared, printed, stored and replayed."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from .job import Manifest
from .status import Status, shortened
from .world import Obstacle


class Create(Struct, frozen=True, tag=True):
    manifest: Manifest
    adopts: bool = False
    """An existing object with this name and these labels, but without an owner, becomes the job's."""

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])


class Delete(Struct, frozen=True, tag=True):
    kind: str
    name: str
    uid: str = ""
    """Precondition: a late delete must never hit a newer pod of the same name."""
    force: bool = False
    """The kubelet does not confirm the deletion: delete without it, if the pod certainly no longer runs."""


class Amend(Struct, frozen=True, tag=True):
    """Change an existing object by a JSON merge patch, which is safe to repeat."""

    kind: str
    name: str
    patch: Manifest
    reason: str = ""
    """Reason of the event that reports the change; empty: no event."""


class DeleteJob(Struct, frozen=True, tag=True):
    """The job's TTL has expired; its children are deleted with it by their owner reference."""


Action = Create | Delete | Amend | DeleteJob


class Event(Struct, frozen=True):
    type: Literal["Normal", "Warning"]
    reason: str
    message: str

    def __post_init__(self) -> None:
        force_setattr(self, "message", shortened(self.message))


class LogLook(Struct, frozen=True):
    """A log whose last line the next decision needs."""

    pod: str
    uid: str
    container: str


Urgency = Literal["now", "soon", "later", "at rest", "seldom"]
"""When a status has to be written.

now      before any action, because the status is the only place that remembers it
soon     the job runs: the next pass would conclude the same, but users want to see it
later    the job is new, as its state says from the start: most pods run within a moment, and one write tells both
at rest  only counts have changed: one write for many pods
seldom   counts of a job with failures have changed, or the reason why it waits: a write now and then
"""


class Decision(Struct, frozen=True, kw_only=True):
    status: Status
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    wake_after: float | None = None
    """Seconds until the decision changes without any change in the world; None: never."""
    urgency: Urgency = "now"
    look: LogLook | None = None


class Outcome(Struct, frozen=True, kw_only=True):
    """The result of applying a decision's actions."""

    done: tuple[Action, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    """Why the remaining actions are impossible for now."""
    error: str = ""
    """Why the remaining actions failed without an obstacle: an error of the server or of the connection."""
    is_unblocked: bool = False
    """The status still says Blocked, but the obstacles are gone."""
    uids: tuple[str, ...] = ()
    """Uids of the objects that were created or deleted, as far as they are known."""

    @property
    def retry(self) -> str:
        """Why the other actions must be tried again; empty if all were done."""
        return self.error or next((obstacle.message for obstacle in self.obstacles), "")
