"""What a job's tasks use (by the metrics API, where there is one) and report (in their logs)."""

from collections.abc import Iterable, Mapping
from typing import Literal

from tfyard import formats
from tfyard.kube import Forbidden, NotFound, Refused, Resource, ServerFault, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import TENSORFLOW_CONTAINER
from tfyard.model.names import JOB_NAME
from tfyard.overview import metrics, top
from tfyard.overview.metrics import Point
from tfyard.overview.progress import total_steps
from tfyard.overview.top import TaskUse
from tfyard.planner.results import fates
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.reading.refusals import VIEW, explained
from tfyard.remote.reading.views import attempts_of, pods
from tfyard.views.pods import PodDetails, PodView

POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods")
TAIL, WHOLE = "200", "100000"
"""Lines of a log: for what happens now, and for a curve."""
MOST_LOGS = 8
"""Tasks whose logs are read each time."""


class JobUsage:
    """Resources that one job uses, asked for at each call of `tasks`."""

    def __init__(self, client: SyncClient, tfjob: StoredTFJob) -> None:
        self._client, self._tfjob = client, tfjob
        self._job = formats.check(tfjob.manifest).job
        self._total = total_steps(self._job) if self._job else None
        self.problem = ""
        """Why CPU and memory are not known, if they are not."""

    def tasks(self) -> list[TaskUse]:
        with explained(self._tfjob.namespace, VIEW):
            known = sorted(pods(self._client, self._tfjob), key=lambda pod: pod.metadata.name)
            used = self._used()
            there = [self._task(pod, used, turn < MOST_LOGS) for turn, pod in enumerate(known)]
        return [*there, *(TaskUse(task=task, state=state) for task, state in self._gone(known))]

    def _gone(self, known: Iterable[PodDetails]) -> list[tuple[str, str]]:
        """Tasks of a job that has ended whose pods are gone, and what became of them."""
        tasks = {pod.task for pod in known}
        return [each for each in self._fates.items() if each[0] not in tasks]

    @property
    def _fates(self) -> dict[str, Literal["Succeeded", "Stopped"]]:
        return fates(self._job, self._tfjob.summary.status) if self._job else {}

    def _task(self, pod: PodDetails, used: dict[str, tuple[float, int]], reads_log: bool) -> TaskUse:
        cpu, memory = used.get(pod.metadata.name, (None, None))
        now = attempts_of(pod, self._fates)[-1]
        points = log_points(self._client, self._tfjob, pod, TAIL) if reads_log and now.started else []
        progress = metrics.progress(points, self._total)
        return TaskUse(task=pod.task, state=now.state, cpu=cpu, memory=memory, progress=progress)

    def _used(self) -> dict[str, tuple[float, int]]:
        of = requests.selecting(labels={JOB_NAME: self._tfjob.name})
        try:
            answer = self._client.send(requests.get(POD_METRICS.path(self._tfjob.namespace), of))
        except NotFound:
            self.problem = "CPU and memory are not known: the cluster has no metrics API (metrics-server)"
            return {}
        except (Forbidden, ServerFault) as problem:
            self.problem = f"CPU and memory are not known: {problem}"
            return {}
        return {each["metadata"]["name"]: top.pod_use(each) for each in answer["items"]}


def points(client: SyncClient, tfjob: StoredTFJob, tasks: Iterable[str]) -> list[Point]:
    """Metrics of these tasks, or of all, by time."""
    names = set(tasks)
    with explained(tfjob.namespace, VIEW):
        chosen = [pod for pod in pods(client, tfjob) if not names or pod.task in names]
        read = [point for pod in chosen for point in log_points(client, tfjob, pod, WHOLE)]
    return sorted(read, key=lambda point: point.at)


def log_points(client: SyncClient, tfjob: StoredTFJob, pod: PodView, lines: str) -> list[Point]:
    """Metrics in a log; empty if there is none: the server refuses that of a container before its start."""
    return metrics.from_log(pod.task, log_of(client, tfjob, pod, {"timestamps": "true", "tailLines": lines}))


def log_of(client: SyncClient, tfjob: StoredTFJob, pod: PodView, query: Mapping[str, str]) -> str:
    """The log of the program of a pod, or the part that the query names; empty if there is none."""
    path = requests.PODS.path(tfjob.namespace, pod.metadata.name, "log")
    try:
        log = client.read(requests.get(path, {"container": _container(pod), **query}))
    except Forbidden:
        raise
    except (Refused, ServerFault):
        return ""
    return log.decode("utf-8", "replace")


def _container(pod: PodView) -> str:
    return pod.program.name or TENSORFLOW_CONTAINER
