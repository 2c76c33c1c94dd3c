"""Observations of a backend: the few facts that decisions depend on."""

from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from .job import Manifest, Task
from .status import Status, shortened

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
ProgramEnd = Literal["", "Succeeded", "Failed"]
WaitReason = Literal[
    "SchedulingGated", "Unschedulable", "VolumeClaim", "Mount", "ImagePull", "Config", "Start", "CrashLoop"
]
END_AT_ONCE = 1
"""The smallest activeDeadlineSeconds that Kubernetes accepts: it ends a pod at once without deleting it."""
DEFAULT_GRACE = 30
"""Seconds that a pod has to end after it was asked to, where it does not say otherwise."""


class Wait(Struct, frozen=True, gc=False):
    """What keeps a pod from running, in the words of the scheduler or the kubelet."""

    reason: WaitReason
    message: str = ""
    """Empty if no component has reported one."""
    since: datetime | None = None
    failed: bool = False
    """Whether an attempt has failed at what the pod waits for: more time alone will not change that."""


class Pod(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt at a task. `gc=False`: there are many, and they hold no containers that could form a cycle."""

    name: str
    uid: str
    task: Task
    attempt: int = 0
    phase: Phase = "Pending"
    program: ProgramEnd = ""
    """How the program ended for good, where the phase does not show it because other containers still run or have
    failed; empty: the phase shows it."""
    asked_to_stop: bool = False
    """The pod was deleted, or ended in place by a suspension, before its program ended: the exit code says nothing
    about the program."""
    ready: bool = False
    exit_code: int | None = None
    failed_init: str = ""
    """Name of the init container that the exit code, reason and message are about; empty: the program."""
    message: str = ""
    """The last lines that the program wrote before it failed."""
    reason: str = ""
    run_started: datetime | None = None
    run_ended: datetime | None = None
    """Start and end of the run that exit code, message and reason describe: the last one that ended."""
    running_since: datetime | None = None
    """Start of the program's current run; None: it does not run."""
    wait: Wait | None = None
    """What keeps the pod from running; None: nothing, or not known."""
    restarts: int = 0
    """How often the program was restarted in place."""
    excused: tuple[str, ...] = ()
    """Restarts in place that its node caused, as far as was seen: `tensorflow/2` is the second of a container."""
    restart_due: bool = False
    """The program has ended, and its node will restart it in place unless the job ends first."""
    told_to_end: bool = False
    """The pod has the deadline END_AT_ONCE: its node ends it without deleting it."""
    disrupted: bool = False
    """The cluster removed the pod, ended its program or never started it (drain, preemption, node pressure, a node
    that is lost or rebooted): this is not a failure of the program."""
    lingers_since: datetime | None = None
    """End of the program, if other containers still run that will not end by themselves; None: there are none, or
    the pod was told to end."""
    member: bool = False
    """The pod belongs to its job's PodGroup; pods that were created too late for it do not."""
    waits: bool = False
    """The pod is a member without a node: the gang scheduler waits for more members."""
    final: bool = False
    """The pod tells Kueue that no other pod will replace it."""
    started: datetime | None = None
    """When the kubelet accepted the pod; None: not yet."""
    deleting: datetime | None = None
    """When the pod should be gone: Kubernetes' deletionTimestamp, which includes the grace period."""

    unreadable: str = ""
    """What cannot be read of the pod, so that its state is not known; empty: nothing."""

    @property
    def end(self) -> ProgramEnd:
        """How the program ended for good; empty: it has not ended."""
        if self.phase == "Succeeded" or self.phase == "Failed":
            return self.program or self.phase
        return self.program


class Obstacle(Struct, frozen=True):
    """Why an object could not be created: a quota, a missing permission, a name that is taken."""

    reason: str
    message: str

    def __post_init__(self) -> None:
        force_setattr(self, "message", shortened(self.message))


class Group(Struct, frozen=True, kw_only=True):
    """The job's PodGroup: its spec, and the gang scheduler's answer."""

    spec: Manifest = {}
    phase: str = ""
    """Phase that Volcano writes: empty until it has seen the group, Pending until there is capacity."""
    deleting: bool = False


class ServicePort(Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    port: int = 0
    protocol: str = "TCP"
    target_port: int | str = 0
    """The pods' port; 0: the same."""


class ServiceSpec(Struct, frozen=True, rename="camel", gc=False):
    """The fields of a Service that decide which tasks it names, and when."""

    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    publish_not_ready_addresses: bool = False


class LastLine(Struct, frozen=True, kw_only=True):
    """The last line of a task's log, as it was when the log was last read."""

    seen: datetime
    """When the log was read."""
    at: datetime | None = None
    """When the line was written, or else since when the program is known to write nothing; None: unknown."""
    text: str = ""
    """The line; empty: the log has none."""
    problem: Literal["", "forbidden", "unreadable"] = ""
    """Why the log could not be read; empty: it could."""


class Observed(Struct, frozen=True, kw_only=True):
    status: Status = Status()
    pods: tuple[Pod, ...] = ()
    children: frozenset[tuple[str, str]] = frozenset()
    """(kind, name) of the job's objects other than pods."""
    group: Group | None = None
    services: dict[str, ServiceSpec] = {}
    """The job's Services by name; where they cannot be edited, none."""
    lines: dict[str, LastLine] = {}
    """Uid of a pod -> the last look at its log; only of tasks that decide, in jobs that ask for it."""
    obstacles: tuple[Obstacle, ...] = ()
    namesake: str = ""
    """Resource of another job with the same name in the namespace; that job has the names that this one needs."""
    deleting: bool = False
    begun: datetime | None = None
    """When the job was first seen, while no stored status says it: the first one is written a little later."""
