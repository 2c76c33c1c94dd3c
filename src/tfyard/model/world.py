"""What a backend observes: the few facts that decisions depend on."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from .job import Manifest, Task
from .status import Status

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
ProgramEnd = Literal["", "Succeeded", "Failed"]
WaitReason = Literal[
    "SchedulingGated", "Unschedulable", "VolumeClaim", "Mount", "ImagePull", "Config", "Start", "CrashLoop"
]
END_AT_ONCE = 1
"""The activeDeadlineSeconds that ends a pod and lets it stay: the smallest that Kubernetes takes."""


class Wait(Struct, frozen=True, gc=False):
    """What keeps a pod from running, in the words of the scheduler or the kubelet."""

    reason: WaitReason
    message: str = ""
    since: datetime | None = None


class Pod(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt at a task. `gc=False`: holds no containers that could form a cycle, and there are many."""

    name: str
    uid: str
    task: Task
    attempt: int = 0
    phase: Phase = "Pending"
    program: ProgramEnd = ""
    """How the program ended for good where the phase does not say it, because other containers of the pod run on
    or have failed; empty: as the phase says."""
    asked_to_stop: bool = False
    """Its deletion came before the end of its program: the end says nothing about the program."""
    ready: bool = False
    exit_code: int | None = None
    message: str = ""
    """The last lines that the program wrote before it failed."""
    reason: str = ""
    run_started: datetime | None = None
    run_ended: datetime | None = None
    """Of the run that exit code, message and reason are about: the last one that ended."""
    running_since: datetime | None = None
    """Start of the present run of a program that was restarted in place."""
    wait: Wait | None = None
    """What keeps it from running, as far as that is known; None: nothing, or nobody has said it."""
    restarts: int = 0
    """How often the program was restarted in place."""
    restart_due: bool = False
    """Its program has ended, and its node starts it again in place, unless the job ends before."""
    disrupted: bool = False
    """The cluster took it away or never let it start (drain, preemption, node pressure, a lost node): not the
    program's own failure."""
    lingers_since: datetime | None = None
    """When its program ended, if other containers still run that nothing will end; None: no such thing, or they
    have been told to end."""
    member: bool = False
    """It belongs to its job's PodGroup; pods that were created too late for it do not."""
    waits: bool = False
    """A member without a node: the gang scheduler waits for enough others."""
    final: bool = False
    """Kueue was told that nothing will replace this pod."""
    started: datetime | None = None
    """When its node took it over; None: it waits for that."""
    deleting: datetime | None = None
    """When it should be gone: Kubernetes' deletionTimestamp, which includes the grace period."""

    @property
    def end(self) -> ProgramEnd:
        """How its program ended for good; empty: it has not."""
        if self.phase == "Succeeded" or self.phase == "Failed":
            return self.program or self.phase
        return self.program


class Obstacle(Struct, frozen=True):
    """Why something could not be created: a quota, a missing permission, a name that is taken."""

    reason: str
    message: str


class Group(Struct, frozen=True, kw_only=True):
    """The job's PodGroup: what the gang scheduler was asked for, and its answer."""

    spec: Manifest = {}
    phase: str = ""
    """Volcano's: empty until it has seen the group, Pending until there is capacity."""
    deleting: bool = False


class Observed(Struct, frozen=True, kw_only=True):
    status: Status = Status()
    pods: tuple[Pod, ...] = ()
    children: frozenset[tuple[str, str]] = frozenset()
    """(kind, name) of the job's own objects other than pods."""
    group: Group | None = None
    obstacles: tuple[Obstacle, ...] = ()
    namesake: str = ""
    """The resource of another job of the same name in the namespace, which has the names that this job needs."""
    deleting: bool = False
