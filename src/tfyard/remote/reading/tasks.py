"""The pod of a running task, and the container in which commands run."""

from collections.abc import Mapping

from msgspec import Struct

from tfyard import formats
from tfyard.errors import NotRunning, Usage
from tfyard.kube.sync import SyncClient
from tfyard.remote.reading import views
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.views.pods import PodView
from tfyard.views.program import waits_for


class TaskContainer(Struct, frozen=True, kw_only=True):
    task: str
    namespace: str
    pod: str
    container: str
    uid: str


def names(tfjob: StoredTFJob) -> list[str]:
    """Names of all tasks of the job."""
    job = formats.check(tfjob.manifest).job
    if job is None:
        raise Usage(f"{tfjob.name} cannot be read: `tfyard describe {tfjob.name}` says why")
    return [task.name for task in job.tasks()]


def pods(client: SyncClient, tfjob: StoredTFJob) -> dict[str, PodView]:
    """Pods by task; those of this job, not of an earlier one of its name."""
    return {pod.task: pod for pod in views.pods(client, tfjob)}


def container_of(
    tfjob: StoredTFJob, pods: Mapping[str, PodView], task: str, container: str = ""
) -> TaskContainer:
    """`container`: default is the one that trains. NotRunning says why it does not run."""
    pod = pods.get(task)
    if pod is None:
        raise NotRunning(f"{task} has no pod{_ended(tfjob)}")
    chosen = container or pod.trainer.name
    status = next((each for each in pod.statuses if each.name == chosen), None)
    if chosen not in _containers(pod):
        raise Usage(f"{task} has no container {chosen}; it has {', '.join(_containers(pod))}")
    if status is None or not status.state.running:
        raise NotRunning(f"{task} is not running{_why(pod, chosen)}")
    return TaskContainer(
        task=task, namespace=tfjob.namespace, pod=pod.name, container=chosen, uid=pod.metadata.uid
    )


def is_running(pod: PodView) -> bool:
    return bool(pod.program.state.running) and not pod.metadata.deletion_timestamp


def _containers(pod: PodView) -> list[str]:
    return [each.name for each in (*pod.spec.containers, *pod.spec.init_containers)]


def _ended(tfjob: StoredTFJob) -> str:
    state = tfjob.summary.status
    if state.is_finished:
        return ": the job has ended; `tfyard logs` and `tfyard cp` still get what it left"
    return f" yet; `tfyard why {tfjob.name}` says what it waits for"


def _why(pod: PodView, container: str) -> str:
    status = next((each for each in pod.statuses if each.name == container), None)
    if status is not None and (end := status.state.terminated):
        return f": it ended with code {end.exit_code}"
    return f": {waits_for(pod)}"
