"""Where a task of a job runs now: its pod, and the container to reach into."""

from collections.abc import Sequence

from msgspec import Struct

from tfyard import formats
from tfyard.errors import TfyardError, Usage
from tfyard.kube.sync import SyncClient
from tfyard.overview.objects import Pod

from . import pod_starts, views
from .jobs import Found


class NotRunning(TfyardError):
    """The task has no running container now."""


class TaskContainer(Struct, frozen=True, kw_only=True):
    task: str
    namespace: str
    pod: str
    container: str
    uid: str


def names(found: Found) -> list[str]:
    """Of all tasks, as the job says."""
    job = formats.check(found.manifest).job
    if job is None:
        raise Usage(f"{found.name} cannot be read: `tfyard describe {found.name}` says why")
    return [task.name for task in job.tasks()]


def pods(client: SyncClient, found: Found) -> dict[str, Pod]:
    """By task; of this job, not of an earlier one of its name."""
    return {pod.task: pod for pod in views.pods(client, found) if pod_starts.belongs(pod, found)}


def container_of(found: Found, known: dict[str, Pod], task: str, container: str = "") -> TaskContainer:
    """`container`: default is the one that trains. NotRunning says why it is not there."""
    pod = known.get(task)
    if pod is None:
        raise NotRunning(f"{task} has no pod{_ended(found)}")
    chosen = container or pod.trainer.name
    status = next((each for each in pod.statuses if each.name == chosen), None)
    if chosen not in _containers(pod):
        raise Usage(f"{task} has no container {chosen}; it has {', '.join(_containers(pod))}")
    if status is None or not status.state.running:
        raise NotRunning(f"{task} is not running{_why(pod, chosen)}")
    return TaskContainer(
        task=task, namespace=found.namespace, pod=pod.name, container=chosen, uid=pod.metadata.uid
    )


def is_running(pod: Pod) -> bool:
    return bool(pod.program.state.running) and not pod.metadata.deletion_timestamp


def only(words: Sequence[str], tasks: Sequence[str]) -> str:
    """The one task that is meant; without a word, that of a job with one task."""
    from tfyard.overview.log_lines import chosen

    meant = chosen(words, tasks)
    if len(meant) == 1:
        return meant[0]
    what = f"{words[0]} means" if words else "the job has"
    some = ", ".join(meant[:4]) + (", …" if len(meant) > 4 else "")
    raise Usage(f"{what} {len(meant)} tasks: name one of {some}")


def _containers(pod: Pod) -> list[str]:
    return [each.name for each in (*pod.spec.containers, *pod.spec.init_containers)]


def _ended(found: Found) -> str:
    state = found.summary.status
    if state.is_finished:
        return ": the job has ended; `tfyard logs` and `tfyard cp` still get what it left"
    return f" yet; `tfyard why {found.name}` says what it waits for"


def _why(pod: Pod, container: str) -> str:
    status = next((each for each in pod.statuses if each.name == container), None)
    if status is not None and (end := status.state.terminated):
        return f": it ended with code {end.exit_code}"
    return f": {pod_starts.waiting_for(pod)}"
