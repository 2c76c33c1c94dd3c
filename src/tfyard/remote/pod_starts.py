"""Which starts of a task's program a pod tells of, and how to ask for their logs."""

from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube import Request, requests
from tfyard.kube.times import timestamp
from tfyard.model import TENSORFLOW_CONTAINER, Ending
from tfyard.model.names import ATTEMPT, REPLICA_INDEX
from tfyard.overview.log_lines import Start, Wanted
from tfyard.overview.objects import Pod, Terminated

from .jobs import Found


def belongs(pod: Pod, found: Found) -> bool:
    """Not to an earlier job of the same name, whose pods are being deleted."""
    owners = {each.uid for each in pod.metadata.owner_references}
    is_task = REPLICA_INDEX in pod.metadata.labels
    return is_task and (not owners or found.manifest["metadata"]["uid"] in owners)


def present(pod: Pod) -> Start:
    """The start that the pod's log is of now."""
    number = pod.metadata.annotations.get(ATTEMPT, "0")
    return Start(pod.task, int(number) + 1 if number.isdigit() else 1, pod.program.restart_count)


def with_attempt(pod: Pod, attempt: int) -> Pod:
    """As if its annotation said so."""
    annotations = {**pod.metadata.annotations, ATTEMPT: str(attempt - 1)}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def has_begun(pod: Pod) -> bool:
    state = pod.program.state
    return bool(state.running or _end(pod, pod.program.restart_count))


def is_over(pod: Pod, start: Start) -> bool:
    return pod.program.restart_count > start.restart or _end(pod, start.restart) is not None


def endings(pod: Pod) -> list[Ending]:
    """Of the present start, and of the one before it in the same pod."""
    now = present(pod)
    numbers = range(max(0, now.restart - 1), now.restart + 1)
    ends = [(restart, end) for restart in numbers if (end := _end(pod, restart))]
    return [_ending(pod, replace(now, restart=restart), end) for restart, end in ends]


def _ending(pod: Pod, start: Start, end: Terminated) -> Ending:
    """Whoever ended the whole pod also ended its present program."""
    reason, message = pod.ended_by if start == present(pod) else ("", "")
    return Ending(
        task=start.task,
        attempt=start.attempt,
        restart=start.restart,
        started=end.started_at,
        finished=end.finished_at,
        exit_code=end.exit_code,
        reason=reason or end.reason,
        message=message or end.message,
    )


def waiting_for(pod: Pod) -> str:
    """In the words of the scheduler or the kubelet."""
    waiting = pod.program.state.waiting
    if waiting and waiting.reason:
        return f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
    refused = [
        each for each in pod.status.conditions if each.type == "PodScheduled" and each.status != "True"
    ]
    return f"{refused[0].reason}: {refused[0].message}" if refused else "its pod is not running yet"


def _end(pod: Pod, restart: int) -> Terminated | None:
    program = pod.program
    if restart == program.restart_count:
        return program.state.terminated or (program.last_state.terminated if program.state.waiting else None)
    return program.last_state.terminated if restart == program.restart_count - 1 else None


class LogRequest(Struct, frozen=True, kw_only=True):
    """`since`: RFC 3339, in whole seconds."""

    pod: str
    container: str
    since: str = ""
    tail: int | None = None
    previous: bool = False
    follow: bool = False

    def at(self, namespace: str) -> Request:
        query = {"container": self.container, "timestamps": "true"}
        if self.since:
            query["sinceTime"] = self.since
        if self.tail is not None:
            query["tailLines"] = str(self.tail)
        query |= {name: "true" for name in ("previous", "follow") if getattr(self, name)}
        return requests.get(requests.PODS.path(namespace, self.pod, "log"), query)


def first_request(pod: Pod, start: Start, wanted: Wanted) -> LogRequest:
    since = timestamp(wanted.since) if wanted.since else ""
    previous = pod.program.restart_count > start.restart
    return LogRequest(
        pod=pod.metadata.name,
        container=pod.program.name or TENSORFLOW_CONTAINER,
        since=since,
        tail=wanted.tail,
        previous=previous,
    )
