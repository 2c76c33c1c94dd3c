"""All that is known of one job, in a cluster or on this machine: its causes are concluded from this."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Self, TypeVar

import msgspec
from msgspec import Struct

from tfyard.model import Manifest, Role, RoleStatus, Status, tensorflow_container
from tfyard.overview.cause import Quote, Source, cut
from tfyard.overview.fixes import GivenAs
from tfyard.overview.job_table import CUT_OFF
from tfyard.overview.references import Reference, of_pod
from tfyard.planner.results import is_final
from tfyard.views.objects import (
    Claim,
    EventView,
    Lease,
    NetworkPolicy,
    NodeView,
    ObjectReference,
    PendingWorkload,
    QueuedWorkload,
    Quota,
    Slice,
    StorageClass,
)
from tfyard.views.pods import PodDetails, PodSpecDetails
from tfyard.views.program import conclude

T = TypeVar("T")
_PROGRAM = r"\bpython[\d.]*(?: -[a-zA-Z]+)* (?:\./)?((?:[\w-]+/)+[\w-]+)\.py\b"
"""A program in a folder of the code, as a command names it."""

LONGEST_LINE = 2000
"""Characters of a line of a log in which causes are looked for."""


class Unreadable(Struct, frozen=True):
    """Stands for objects that were not read, with the reason; without a reason: they were not needed."""

    reason: str = ""


NOT_ASKED = Unreadable()


def seen(objects: "tuple[T, ...] | Unreadable") -> tuple[T, ...]:
    return () if isinstance(objects, Unreadable) else objects


class LogTail(Struct, frozen=True):
    """The last lines of a task's log, and the time of the last one."""

    text: str
    at: datetime | None = None

    @classmethod
    def of(cls, lines: Iterable[str], at: datetime | None) -> Self:
        """Long lines are cut: looking for causes in one of 64 KiB takes minutes."""
        return cls("\n".join(line[:LONGEST_LINE] for line in lines), at)


class End(Struct, frozen=True, kw_only=True):
    """The end of an attempt that did not succeed."""

    task: str
    init_container: str = ""
    """The one that ended, before the program began."""
    exit_code: int | None = None
    reason: str = ""
    text: str = ""
    started: datetime | None = None
    at: datetime | None = None
    source: Source = "container"
    is_past: bool = False
    """Whether the task runs again."""

    def quote(self, line: str = "") -> Quote:
        return Quote(self.source, cut(line or self.text.strip().rpartition("\n")[2] or self.words), self.at)

    @property
    def words(self) -> str:
        code = "" if self.exit_code is None else f"exit code {self.exit_code}"
        return ", ".join(filter(None, (self.reason if self.reason != "Error" else "", code))) or "it failed"


class Preparation(Struct, frozen=True):
    """An init container that runs, for which the program of its task waits."""

    task: str
    container: str
    since: datetime | None = None
    log: LogTail | None = None


class Evidence(Struct, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    is_local: bool = False
    phase: str = ""
    """Phase of a run on this machine, by its record: it may have been interrupted or killed."""
    given_as: GivenAs = "job-file"
    code: str = ""
    """Folder of the job's own code, in its containers or on this machine; empty: the code is in the image."""
    created: datetime | None = None
    deleted: datetime | None = None
    """When the deletion of the job was asked for."""
    finalizers: tuple[str, ...] = ()
    generation: int = 0
    uid: str = ""
    spec: Manifest = {}
    """Spec of the TFJob, as it is stored."""
    labels: dict[str, str] = {}
    roles: tuple[Role, ...] = ()
    status: Status = Status()
    status_problem: str = ""
    """Why the stored status cannot be read; empty: it can."""
    ends: tuple[End, ...] = ()
    """Ends of tasks without pods: those of a run on this machine."""
    preparing: tuple[Preparation, ...] = ()
    """Init containers of a run on this machine; those of pods are found in the pods."""
    stopped: tuple[str, ...] = ()
    """Tasks that ran when the job ended, and were stopped because of that."""
    logs: dict[str, LogTail] = {}
    unread: tuple[str, ...] = ()
    """What else could not be read, and why."""
    pods: tuple[PodDetails, ...] | Unreadable = NOT_ASKED
    former: tuple[PodDetails, ...] = ()
    """Pods of a job that had the same name: theirs are not free before they have ended."""
    events: tuple[EventView, ...] | Unreadable = NOT_ASKED
    nodes: tuple[NodeView, ...] | Unreadable = NOT_ASKED
    neighbours: tuple[PodDetails, ...] | Unreadable = NOT_ASKED
    """Pods of the whole cluster that have a node."""
    claims: tuple[Claim, ...] | Unreadable = NOT_ASKED
    classes: tuple[StorageClass, ...] | Unreadable = NOT_ASKED
    leases: tuple[Lease, ...] | Unreadable = NOT_ASKED
    """Leases by which operators elect their leader."""
    operators: tuple[Manifest, ...] | Unreadable = NOT_ASKED
    """Deployments of tfyard's operator, if none works on the job."""
    definitions: tuple[Manifest, ...] | Unreadable = NOT_ASKED
    """The CRD of TFJobs, if no operator works on the job."""
    quotas: tuple[Quota, ...] | Unreadable = NOT_ASKED
    slices: tuple[Slice, ...] | Unreadable = NOT_ASKED
    policies: tuple[NetworkPolicy, ...] | Unreadable = NOT_ASKED
    workloads: tuple[QueuedWorkload, ...] | Unreadable = NOT_ASKED
    """Workloads of Kueue, for jobs with a queue."""
    pending: tuple[PendingWorkload, ...] | Unreadable = NOT_ASKED
    """All Workloads that wait in the job's queue; few users may ask for them, and no old Kueue can tell."""

    @property
    def tasks(self) -> tuple[PodDetails, ...]:
        """Pods of the job's tasks, without those that are being deleted."""
        return tuple(pod for pod in seen(self.pods) if pod.task and pod.metadata.deletion_timestamp is None)

    @property
    def waiting(self) -> tuple[PodDetails, ...]:
        """Pods of tasks that have not started."""
        return tuple(pod for pod in self.tasks if pod.status.phase == "Pending")

    @property
    def running(self) -> tuple[PodDetails, ...]:
        return tuple(pod for pod in self.tasks if pod.is_up)

    @property
    def up(self) -> set[str]:
        """The tasks that run; by the status of the job, if its pods may not be read."""
        if self.is_local and not self.status.is_finished:
            return set(self.logs)
        if not isinstance(self.pods, Unreadable):
            return {pod.task for pod in self.running}
        counted = self.status.replica_statuses
        whole = [role for role in self.roles if counted.get(role.name, RoleStatus()).active == role.replicas]
        tasks = {f"{role.name.lower()}-{index}" for role in whole for index in range(role.replicas)}
        return tasks - {self.noted[0]}

    @property
    def noted(self) -> tuple[str, str]:
        """What the operator wrote into the job about a pod that waits: its task, and the message of the kubelet or
        the scheduler."""
        waiting = self.status.condition("Waiting")
        if waiting is None or waiting.status != "True":
            return "", ""
        task, _, message = waiting.message.partition(": ")
        return task, message

    @property
    def counts(self) -> tuple[int, int]:
        """Number of tasks that run, and of those that have succeeded."""
        if isinstance(self.pods, Unreadable):
            counted = self.status.replica_statuses.values()
            return sum(role.active for role in counted), sum(role.succeeded for role in counted)
        return len(self.running), sum(conclude(pod).outcome == "Succeeded" for pod in self.tasks)

    @property
    def stacks(self) -> str:
        """The command that shows what the programs are doing."""
        where = f" -n {self.namespace}" if self.namespace else ""
        return f"tfyard why {self.name}{where} --stacks"

    def warnings(self, pod: PodDetails, *reasons: str) -> list[EventView]:
        """Warnings about a pod that are newer than its last change, the newest first."""
        events = self.events_of("Pod", pod.name, pod.metadata.uid)
        return [event for event in events if event.reason in reasons and _is_news(event, pod)]

    def events_of(self, kind: str, name: str, uid: str = "") -> list[EventView]:
        """Events of an object, the newest first. With a uid: without those of other objects of that name."""
        about = (event for event in seen(self.events) if _is_about(event, ObjectReference(kind, name, uid)))
        return sorted(about, key=lambda event: event.order, reverse=True)

    def endings(self) -> Iterator[End]:
        """The last end of each task that did not succeed: from its pod, or else from the status of the job."""
        ends = {end.task: end for end in self.ends}
        ends |= {end.task: end for pod in self.tasks if (end := self._end_of(pod))}
        up = self.up
        for ending in reversed(self.status.endings):
            if ending.task not in ends:
                ends[ending.task] = End(
                    task=ending.task,
                    init_container=ending.container,
                    exit_code=ending.exit_code,
                    reason=ending.reason,
                    text=ending.message,
                    started=ending.started,
                    at=ending.finished,
                    is_past=self.phase in CUT_OFF or (ending.task in up and not self.status.is_finished),
                )
        failure = self.status.failure
        if not ends and failure is not None and failure.task:
            ends[failure.task] = End(task=failure.task, exit_code=failure.exit_code, text=failure.message)
        yield from ends.values()

    def failures(self) -> Iterator[End]:
        """Ends of tasks that have failed for good: a job may succeed without them."""
        yield from (end for end in self.endings() if self._has_failed(end.task))

    def _has_failed(self, task: str) -> bool:
        """Whether a task's last attempt failed, by the run's record, its pod, or else the status of the job."""
        if self.is_local:
            return any(end.task == task for end in self.ends)
        pods = [pod for pod in self.tasks if pod.task == task]
        if pods:
            return conclude(pods[0]).outcome == "Failed"
        return any(is_final(self.status, each) for each in self.status.endings if each.task == task)

    def _end_of(self, pod: PodDetails) -> End | None:
        """The failed end of a pod's program, or of its run before a restart in place."""
        program = conclude(pod)
        ended = program.failure
        if program.outcome == "Succeeded" or not (ended or program.outcome == "Failed"):
            return None
        log = None if pod.is_up else self.logs.get(pod.task)
        message = ended.message if ended else ""
        return End(
            task=pod.task,
            init_container=program.failed_preparation,
            exit_code=ended.exit_code if ended else None,
            reason=program.reason or (ended.reason if ended else ""),
            text=program.message or (log.text if log and len(log.text) > len(message) else message),
            started=ended.started_at if ended else None,
            at=ended.finished_at if ended else None,
            is_past=pod.is_up and not self.status.is_finished,
        )

    def memory(self, task: str, init_container: str = "") -> str:
        """Memory limit of a task, or of one of its init containers; empty: none."""
        resources = self.container(task, init_container).get("resources") or {}
        return str((resources.get("limits") or {}).get("memory", ""))

    def container(self, task: str, init_container: str = "") -> Manifest:
        """The training container of a task, or one of its init containers, from the job's template."""
        template = self._template(task)
        if init_container:
            steps = (template.get("spec") or {}).get("initContainers") or []
            return next((each for each in steps if each.get("name") == init_container), {})
        return tensorflow_container(template) if template else {}

    def references(self, task: str) -> list[Reference]:
        """The ConfigMaps and Secrets that the pods of a task need, by the job's template."""
        return of_pod(self._template(task).get("spec") or {})

    def of_code(self, path: str) -> str:
        """Path of a file in the folder of the job's code; empty: it is elsewhere, or the code is in the image."""
        folder = f"{self.code.rstrip('/')}/"
        if not self.code or (path.startswith("/") and not path.startswith(folder)):
            return ""
        return path.removeprefix(folder).removeprefix("./") if "/" in path else ""

    def as_module(self, task: str) -> str:
        """The module that the program of a task is; empty: it is not in a folder of the code."""
        container = self.container(task)
        words = map(str, (*(container.get("command") or ()), *(container.get("args") or ())))
        program = re.search(_PROGRAM, " ".join(words).replace(f"{self.code.rstrip('/')}/", ""))
        return program[1].replace("/", ".") if program else ""

    def pod(self, task: str) -> PodDetails:
        """The pod of a task; if it may not be read, one made from the job's template."""
        existing = next((pod for pod in self.tasks if pod.task == task), None)
        if existing is not None:
            return existing
        try:
            spec = msgspec.convert(self._template(task).get("spec") or {}, PodSpecDetails, strict=False)
            return PodDetails(spec=spec)
        except msgspec.ValidationError:  # the operator refuses such a spec
            return PodDetails()

    def _template(self, task: str) -> Manifest:
        role = task.rpartition("-")[0]
        return next((each.template for each in self.roles if each.name.lower() == role), {})


def _is_about(event: EventView, asked: ObjectReference) -> bool:
    about = event.involved_object
    is_another = about.uid and asked.uid and about.uid != asked.uid
    return (about.kind, about.name) == (asked.kind, asked.name) and not is_another


def _is_news(event: EventView, pod: PodDetails) -> bool:
    return event.at is None or pod.changed is None or event.at >= pod.changed
