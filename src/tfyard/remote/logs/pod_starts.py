"""Starts of a task's program that a pod shows, and the requests for their logs."""

from msgspec import Struct
from msgspec.structs import replace

from tfyard.kube import Request, requests
from tfyard.kube.times import timestamp
from tfyard.logs.lines import LogSelection, Start
from tfyard.model import TENSORFLOW_CONTAINER, Ending
from tfyard.model.names import ATTEMPT
from tfyard.views.pods import ContainerStateTerminated, ContainerStatus, PodView
from tfyard.views.program import ProgramRun, failed_sidecars, holding, runs


def present(pod: PodView) -> Start:
    """The start whose log the pod has now."""
    held_by = holding(pod)
    shown = held_by or pod.program
    return Start(pod.task, pod.attempt + 1, shown.restart_count, held_by.name if held_by else "")


def with_attempt(pod: PodView, attempt: int) -> PodView:
    """The pod with this attempt in its annotation."""
    annotations = {**pod.metadata.annotations, ATTEMPT: str(attempt - 1)}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def has_begun(pod: PodView) -> bool:
    """Whether the present start of the program has begun."""
    return holding(pod) is None and has_log(pod)


def has_log(pod: PodView) -> bool:
    """Whether the present start has begun: of the program, or of an init container that it waits for."""
    now = [run.state for run in runs(pod) if run.restart == present(pod).restart]
    return any(state.running or state.terminated for state in now)


def is_over(pod: PodView, start: Start) -> bool:
    if present(pod).container != start.container:
        return True  # the program has started since
    ended = [run.restart for run in runs(pod) if run.state.terminated]
    return restarts(pod, start) > start.restart or start.restart in ended


def restarts(pod: PodView, start: Start) -> int:
    """How often the container of a start was restarted in place."""
    return _status(pod, start).restart_count


def _status(pod: PodView, start: Start) -> ContainerStatus:
    inits = (each for each in pod.preparations if each.name == start.container)
    return next(inits, pod.program)


def endings(pod: PodView) -> list[Ending]:
    """Endings of the present start, and of the one before it in the same pod."""
    return [_ending(pod, run, run.state.terminated) for run in runs(pod) if run.state.terminated]


def failed_ends(pod: PodView) -> list[tuple[str, Ending]]:
    """Sidecars that have failed, and how."""
    return [
        (
            status.name,
            Ending(
                task=pod.task,
                attempt=pod.attempt + 1,
                exit_code=end.exit_code,
                reason=end.reason,
                message=end.message,
            ),
        )
        for status, end in failed_sidecars(pod)
    ]


def start_of(ending: Ending) -> Start:
    return Start(ending.task, ending.attempt, ending.restart, ending.container)


def _ending(pod: PodView, run: ProgramRun, end: ContainerStateTerminated) -> Ending:
    return Ending(
        task=pod.task,
        attempt=pod.attempt + 1,
        restart=run.restart,
        started=end.started_at,
        finished=end.finished_at,
        exit_code=end.exit_code,
        container=run.container,
        reason=run.reason,
        message=run.message,
    )


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


def first_request(pod: PodView, start: Start, wanted: LogSelection) -> LogRequest:
    since = timestamp(wanted.since) if wanted.since else ""
    previous = restarts(pod, start) > start.restart
    return LogRequest(
        pod=pod.metadata.name,
        container=start.container or pod.program.name or TENSORFLOW_CONTAINER,
        since=since,
        tail=wanted.tail,
        previous=previous,
    )
