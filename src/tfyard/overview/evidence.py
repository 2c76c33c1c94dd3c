"""All that is known of one job, from wherever it is: what its cause is found in."""

from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import Struct

from tfyard.model import Manifest, Role, RoleStatus, Status, tensorflow_container
from tfyard.overview.attempts import is_final
from tfyard.overview.cause import Quote, Source, cut
from tfyard.overview.objects import (
    Claim,
    Definition,
    Event,
    Lease,
    Node,
    Pod,
    PodSpec,
    Policy,
    QueuedWorkload,
    Quota,
    Slice,
    StorageClass,
    Terminated,
)

T = TypeVar("T")


class Unreadable(Struct, frozen=True):
    """What could not be looked at, and why; without a reason: there was no need to."""

    reason: str = ""


NOT_ASKED = Unreadable()


def seen(found: "tuple[T, ...] | Unreadable") -> tuple[T, ...]:
    return () if isinstance(found, Unreadable) else found


class LogTail(Struct, frozen=True):
    """The last lines that a task wrote, and when it wrote the last one."""

    text: str
    at: datetime | None = None


class End(Struct, frozen=True, kw_only=True):
    """How an attempt at a task ended without success."""

    task: str
    exit_code: int | None = None
    reason: str = ""
    text: str = ""
    at: datetime | None = None
    source: Source = "container"
    is_past: bool = False
    """The task runs again."""

    def quote(self, line: str = "") -> Quote:
        return Quote(self.source, cut(line or self.text.strip().rpartition("\n")[2] or self.words), self.at)

    @property
    def words(self) -> str:
        code = "" if self.exit_code is None else f"exit code {self.exit_code}"
        return ", ".join(filter(None, (self.reason if self.reason != "Error" else "", code))) or "it failed"


class Evidence(Struct, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    is_local: bool = False
    phase: str = ""
    """Of a run on this machine, as its record says: it may have been interrupted or killed."""
    created: datetime | None = None
    generation: int = 0
    uid: str = ""
    spec: Manifest = {}
    """Of the TFJob, as it is stored."""
    labels: dict[str, str] = {}
    roles: tuple[Role, ...] = ()
    status: Status = Status()
    status_problem: str = ""
    """Why the stored status cannot be read, if it cannot."""
    ends: tuple[End, ...] = ()
    """Known without pods: those of a run on this machine."""
    logs: dict[str, LogTail] = {}
    unread: tuple[str, ...] = ()
    """What else could not be looked at, and why."""
    pods: tuple[Pod, ...] | Unreadable = NOT_ASKED
    events: tuple[Event, ...] | Unreadable = NOT_ASKED
    nodes: tuple[Node, ...] | Unreadable = NOT_ASKED
    neighbours: tuple[Pod, ...] | Unreadable = NOT_ASKED
    """The pods that have nodes, of all jobs."""
    claims: tuple[Claim, ...] | Unreadable = NOT_ASKED
    classes: tuple[StorageClass, ...] | Unreadable = NOT_ASKED
    leases: tuple[Lease, ...] | Unreadable = NOT_ASKED
    """Those by which operators elect their leader."""
    definitions: tuple[Definition, ...] | Unreadable = NOT_ASKED
    """Of TFJobs: the CRD, if nobody works on the job."""
    quotas: tuple[Quota, ...] | Unreadable = NOT_ASKED
    slices: tuple[Slice, ...] | Unreadable = NOT_ASKED
    policies: tuple[Policy, ...] | Unreadable = NOT_ASKED
    workloads: tuple[QueuedWorkload, ...] | Unreadable = NOT_ASKED
    """Kueue's, for jobs with a queue."""

    @property
    def tasks(self) -> tuple[Pod, ...]:
        """Its pods, without those that are being deleted."""
        return tuple(pod for pod in seen(self.pods) if pod.task and pod.metadata.deletion_timestamp is None)

    @property
    def waiting(self) -> tuple[Pod, ...]:
        """The pods that have not started."""
        return tuple(pod for pod in self.tasks if pod.status.phase == "Pending")

    @property
    def running(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.tasks if pod.status.phase == "Running" and is_up(pod))

    @property
    def up(self) -> set[str]:
        """The tasks that run, here or there; of pods that may not be seen, as the status of the job says."""
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
        """What the operator wrote into the job about a pod that waits: its task, and the words of the kubelet or
        the scheduler."""
        waiting = self.status.condition("Waiting")
        if waiting is None or waiting.status != "True":
            return "", ""
        task, _, message = waiting.message.partition(": ")
        return task, message

    @property
    def counts(self) -> tuple[int, int]:
        """How many tasks run, and how many have succeeded."""
        if isinstance(self.pods, Unreadable):
            counted = self.status.replica_statuses.values()
            return sum(role.active for role in counted), sum(role.succeeded for role in counted)
        return len(self.running), sum(pod.status.phase == "Succeeded" for pod in self.tasks)

    def warnings(self, pod: Pod, *reasons: str) -> list[Event]:
        """Warnings about it that are newer than its last change, the newest first."""
        found = [event for event in self.events_of("Pod", pod.name) if event.reason in reasons]
        return [event for event in found if _is_news(event, pod)]

    def events_of(self, kind: str, name: str) -> list[Event]:
        """The newest first."""
        about = (
            e for e in seen(self.events) if (e.involved_object.kind, e.involved_object.name) == (kind, name)
        )
        return sorted(about, key=lambda event: event.order, reverse=True)

    def endings(self) -> Iterator[End]:
        """The last end of each task that did not succeed: from its pod, or else as the job remembers it."""
        found = {end.task: end for end in self.ends}
        found |= {end.task: end for pod in self.tasks if (end := self._end_of(pod))}
        up = self.up
        for ending in reversed(self.status.endings):
            if ending.task not in found:
                found[ending.task] = End(
                    task=ending.task,
                    exit_code=ending.exit_code,
                    reason=ending.reason,
                    text=ending.message,
                    at=ending.finished,
                    is_past=ending.task in up and not self.status.is_finished,
                )
        failure = self.status.failure
        if not found and failure is not None and failure.task:
            found[failure.task] = End(task=failure.task, exit_code=failure.exit_code, text=failure.message)
        yield from found.values()

    def failures(self) -> Iterator[End]:
        """Of tasks that have failed for good: a job may succeed without them."""
        yield from (end for end in self.endings() if self._has_failed(end.task))

    def _has_failed(self, task: str) -> bool:
        """Its last attempt failed, as the record of the run, its pod, or else the status of the job says."""
        if self.is_local:
            return any(end.task == task for end in self.ends)
        pods = [pod for pod in self.tasks if pod.task == task]
        if pods:
            return pods[0].status.phase == "Failed"
        return any(is_final(self.status, each) for each in self.status.endings if each.task == task)

    def _end_of(self, pod: Pod) -> End | None:
        """Of a pod whose program has ended, or ended before it was restarted in place."""
        ended = last_end(pod)
        if pod.status.phase == "Succeeded" or not (ended or pod.status.phase == "Failed"):
            return None
        log = None if is_up(pod) else self.logs.get(pod.task)
        said = ended.message if ended else ""
        return End(
            task=pod.task,
            exit_code=ended.exit_code if ended else None,
            reason=pod.status.reason or (ended.reason if ended else ""),
            text=pod.status.message or (log.text if log and len(log.text) > len(said) else said),
            at=ended.finished_at if ended else None,
            is_past=is_up(pod) and not self.status.is_finished,
        )

    def memory(self, task: str) -> str:
        """Its limit, if it has one."""
        resources = self.container(task).get("resources") or {}
        return str((resources.get("limits") or {}).get("memory", ""))

    def container(self, task: str) -> Manifest:
        """The one that trains, as the job has it."""
        template = self._template(task)
        return tensorflow_container(template) if template else {}

    def pod(self, task: str) -> Pod:
        """Its pod; of one that may not be seen, what the job says of it."""
        found = next((pod for pod in self.tasks if pod.task == task), None)
        if found is not None:
            return found
        try:
            return Pod(spec=msgspec.convert(self._template(task).get("spec") or {}, PodSpec, strict=False))
        except msgspec.ValidationError:  # of a spec that the operator refuses
            return Pod()

    def _template(self, task: str) -> Manifest:
        role = task.rpartition("-")[0]
        return next((each.template for each in self.roles if each.name.lower() == role), {})


def last_end(pod: Pod) -> Terminated | None:
    """How a container of it last ended without success: the one that trains, unless one before it failed."""
    for status in sorted(pod.statuses, key=lambda each: each.name != pod.trainer.name):
        ended = status.state.terminated or status.last_state.terminated
        if ended is not None and (ended.exit_code or ended.reason == "OOMKilled"):
            return ended
    return None


def is_up(pod: Pod) -> bool:
    """Its training container runs, which the phase does not say: a crash loop is Running, too."""
    found = [status for status in pod.status.container_statuses if status.name == pod.trainer.name]
    return pod.status.phase == "Running" and any(status.state.running for status in found)


def _is_news(event: Event, pod: Pod) -> bool:
    uid = event.involved_object.uid
    if uid and pod.metadata.uid and uid != pod.metadata.uid:
        return False
    return event.at is None or pod.changed is None or event.at >= pod.changed
