"""What should happen now. A Decision is a value: it can be compared, printed, stored and replayed."""

from typing import Literal

from msgspec import Struct

from .job import Manifest
from .status import Status
from .world import Obstacle


class Create(Struct, frozen=True, tag=True):
    manifest: Manifest
    adopts: bool = False
    """An object of this name and these labels that nobody owns becomes the job's."""

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
    """The kubelet was asked and does not answer: do not wait for it any longer, if the pod surely runs no more."""


class Amend(Struct, frozen=True, tag=True):
    """Change an existing object by a JSON merge patch, which is safe to repeat."""

    kind: str
    name: str
    patch: Manifest


class DeleteJob(Struct, frozen=True, tag=True):
    """The job's TTL has expired; its children are deleted with it by their owner reference."""


Action = Create | Delete | Amend | DeleteJob


class Event(Struct, frozen=True):
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Urgency = Literal["now", "soon", "at rest", "seldom"]
"""When a status has to be written.

now      before anything is done, because nothing else remembers it
soon     the job has started or runs: the next pass would find the same, but people want to know
at rest  only counts have changed: worth a write, but not one for each pod
seldom   the same in a job that does not go well, or what it waits for: worth a write now and then
"""


class Decision(Struct, frozen=True, kw_only=True):
    status: Status
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    wake_after: float | None = None
    """Seconds until the decision changes without any change in the world; None: never."""
    urgency: Urgency = "now"


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of a decision's actions."""

    done: tuple[Action, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    """What stands in the way of the others."""
    error: str = ""
    """Why the others failed, if nothing stands in the way: the server did not answer as it should."""
    is_unblocked: bool = False
    """What stood in the way before does no longer, which the status does not say yet."""

    @property
    def retry(self) -> str:
        """Why the other actions must be tried again; empty if all were done."""
        return self.error or next((obstacle.message for obstacle in self.obstacles), "")
