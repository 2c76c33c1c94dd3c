"""What a job's tasks use (by the metrics API, where there is one) and report (in their logs)."""

from collections.abc import Iterable

from tfyard import formats
from tfyard.kube import Forbidden, NotFound, Refused, Resource, ServerFault, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import TENSORFLOW_CONTAINER
from tfyard.model.names import JOB_NAME
from tfyard.overview import metrics, top
from tfyard.overview.metrics import Point
from tfyard.overview.objects import Pod
from tfyard.overview.progress import total_steps
from tfyard.overview.top import TaskUse

from .jobs import Found
from .views import attempts_of, pods

POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods")
TAIL, WHOLE = "200", "100000"
"""Lines of a log: for what happens now, and for a curve."""
MOST_LOGS = 8
"""Of how many tasks the logs are read each time."""


class JobUsage:
    """Of one job; asks again at each `tasks`."""

    def __init__(self, client: SyncClient, found: Found) -> None:
        self._client, self._found = client, found
        job = formats.check(found.manifest).job
        self._total = total_steps(job) if job else None
        self.problem = ""
        """Why CPU and memory are not known, if they are not."""

    def tasks(self) -> list[TaskUse]:
        found = sorted(pods(self._client, self._found), key=lambda pod: pod.metadata.name)
        used = self._used()
        return [self._task(pod, used, turn < MOST_LOGS) for turn, pod in enumerate(found)]

    def _task(self, pod: Pod, used: dict[str, tuple[float, int]], reads_log: bool) -> TaskUse:
        cpu, memory = used.get(pod.metadata.name, (None, None))
        now = attempts_of(pod)[-1]
        points = log_points(self._client, self._found, pod, TAIL) if reads_log and now.started else []
        progress = metrics.progress(points, self._total)
        return TaskUse(task=pod.task, state=now.state, cpu=cpu, memory=memory, progress=progress)

    def _used(self) -> dict[str, tuple[float, int]]:
        of = requests.selecting(labels={JOB_NAME: self._found.name})
        try:
            answer = self._client.send(requests.get(POD_METRICS.path(self._found.namespace), of))
        except NotFound:
            self.problem = "CPU and memory are not known: the cluster has no metrics API (metrics-server)"
            return {}
        except (Forbidden, ServerFault) as problem:
            self.problem = f"CPU and memory are not known: {problem}"
            return {}
        return {each["metadata"]["name"]: top.pod_use(each) for each in answer["items"]}


def points(client: SyncClient, found: Found, tasks: Iterable[str]) -> list[Point]:
    """Of these tasks, or of all; by time."""
    wanted = set(tasks)
    chosen = [pod for pod in pods(client, found) if not wanted or pod.task in wanted]
    read = [point for pod in chosen for point in log_points(client, found, pod, WHOLE)]
    return sorted(read, key=lambda point: point.at)


def log_points(client: SyncClient, found: Found, pod: Pod, lines: str) -> list[Point]:
    """Empty if there is no log: of a container that has not started, the server refuses to give one."""
    query = {"container": _container(pod), "timestamps": "true", "tailLines": lines}
    path = requests.PODS.path(found.namespace, pod.metadata.name, "log")
    try:
        log = client.read(requests.get(path, query))
    except Forbidden:
        raise
    except (Refused, ServerFault):
        return []
    return metrics.from_log(pod.task, log.decode("utf-8", "replace"))


def _container(pod: Pod) -> str:
    return pod.program.name or TENSORFLOW_CONTAINER
