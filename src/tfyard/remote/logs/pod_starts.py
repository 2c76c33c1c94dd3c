"""Starts of a task's program that a pod shows, and the requests for their logs."""

from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube import Request, requests
from tfyard.kube.times import timestamp
from tfyard.logs.lines import Start, Wanted
from tfyard.model import TENSORFLOW_CONTAINER, Ending
from tfyard.model.names import ATTEMPT
from tfyard.views.pods import ContainerStateTerminated, PodView
from tfyard.views.program import ProgramRun, runs


def present(pod: PodView) -> Start:
    """The start whose log the pod has now."""
    return Start(pod.task, pod.attempt + 1, pod.program.restart_count)


def with_attempt(pod: PodView, attempt: int) -> PodView:
    """The pod with this attempt in its annotation."""
    annotations = {**pod.metadata.annotations, ATTEMPT: str(attempt - 1)}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def has_begun(pod: PodView) -> bool:
    now = [run.state for run in runs(pod) if run.restart == pod.program.restart_count]
    return any(state.running or state.terminated for state in now)


def is_over(pod: PodView, start: Start) -> bool:
    ended = [run.restart for run in runs(pod) if run.state.terminated]
    return pod.program.restart_count > start.restart or start.restart in ended


def endings(pod: PodView) -> list[Ending]:
    """Endings of the present start, and of the one before it in the same pod."""
    return [_ending(pod, run, run.state.terminated) for run in runs(pod) if run.state.terminated]


def _ending(pod: PodView, run: ProgramRun, end: ContainerStateTerminated) -> Ending:
    return Ending(
        task=pod.task,
        attempt=pod.attempt + 1,
        restart=run.restart,
        started=end.started_at,
        finished=end.finished_at,
        exit_code=end.exit_code,
        reason=run.reason,
        message=run.message,
    )


def waiting_for(pod: PodView) -> str:
    """What the pod waits for, in the words of the scheduler or the kubelet."""
    waiting = pod.program.state.waiting
    if waiting and waiting.reason:
        return f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
    scheduled = pod.condition("PodScheduled")
    if scheduled is None or scheduled.status == "True":
        return "its pod is not running yet"
    return f"{scheduled.reason}: {scheduled.message}"


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


def first_request(pod: PodView, start: Start, wanted: Wanted) -> LogRequest:
    since = timestamp(wanted.since) if wanted.since else ""
    previous = pod.program.restart_count > start.restart
    return LogRequest(
        pod=pod.metadata.name,
        container=pod.program.name or TENSORFLOW_CONTAINER,
        since=since,
        tail=wanted.tail,
        previous=previous,
    )
