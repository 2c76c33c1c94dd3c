"""The PodRunner of this machine: tasks of one job as pods of a node."""

import uuid
from collections.abc import Callable, Sequence

from tfyard.backends.local.store import LocalStore
from tfyard.model import (
    ROLES,
    TENSORFLOW_CONTAINER,
    Action,
    Create,
    Delete,
    DeleteJob,
    Job,
    Manifest,
    Observed,
    Outcome,
    Pod,
    Task,
)
from tfyard.model.names import ATTEMPT, REPLICA_INDEX, REPLICA_TYPE
from tfyard.node.node import Node
from tfyard.node.pod import ContainerState, PodState
from tfyard.node.volumes import Volumes

PREEMPTED = "Preempted"
_ROLES = {role.lower(): role for role in ROLES}


class LocalRunner:
    """`adapt` turns the planner's pod into the one that runs here."""

    def __init__(
        self, node: Node, store: LocalStore, volumes: Volumes, adapt: Callable[[Manifest, Task], Manifest]
    ) -> None:
        self._node, self._store, self._volumes, self._adapt = node, store, volumes, adapt
        self.is_deleted = False

    async def observe(self, job: Job) -> Observed:  # noqa: ARG002
        pods = tuple(_observed(state) for state in self._node.states())
        return Observed(status=self._store.status, pods=pods)

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:  # noqa: ARG002
        uids = {state.name: state.uid for state in self._node.states()}
        for action in actions:
            match action:
                case Create(manifest) if action.kind == "Pod" and action.name not in uids:
                    self._create(manifest)
                case Delete("Pod", name, force=force) if name in uids:
                    self._node.delete(uids[name], 0 if force else None)
                case DeleteJob():
                    self.is_deleted = True
        return Outcome(done=tuple(actions))

    def stop_all(self, *, force: bool) -> None:
        for state in self._node.states():
            self._node.delete(state.uid, 0 if force else None)

    def evict(self, task: str) -> bool:
        """As a preemption does; false if the task is not running."""
        found = [s for s in self._node.states() if s.is_running and task_of(s.manifest).name == task]
        for state in found:
            self._node.evict(state.uid, PREEMPTED)
        return bool(found)

    def tasks(self) -> dict[str, str]:
        """Uid of a pod -> the name of its task."""
        return {state.uid: task_of(state.manifest).name for state in self._node.states()}

    def _create(self, manifest: Manifest) -> None:
        task, metadata = task_of(manifest), {**manifest["metadata"], "uid": uuid.uuid4().hex[:8]}
        pod = self._adapt({**manifest, "metadata": metadata}, task)
        self._node.create(pod, self._volumes, lambda container: log_name(task, container))


def task_of(pod: Manifest) -> Task:
    labels = pod["metadata"]["labels"]
    return Task(_ROLES[labels[REPLICA_TYPE]], int(labels[REPLICA_INDEX]))


def log_name(task: Task, container: str) -> str:
    return task.name if container == TENSORFLOW_CONTAINER else f"{task.name}.{container}"


def _observed(state: PodState) -> Pod:
    shown = _shown(state.containers)
    return Pod(
        name=state.name,
        uid=state.uid,
        task=task_of(state.manifest),
        attempt=int(state.manifest["metadata"]["annotations"].get(ATTEMPT, "0")),
        phase=state.phase,
        ready=state.is_ready,
        exit_code=shown.exit_code,
        message=shown.message,
        reason=state.reason or shown.reason,
        restarts=sum(container.restarts for container in state.containers),
        disrupted=bool(state.reason),
        deleting=state.deleting,
    )


def _shown(containers: Sequence[ContainerState]) -> ContainerState:
    """The container whose end is the task's: the one that trains, unless only another one failed."""
    mains = [container for container in containers if not container.is_init]
    main = next((container for container in mains if container.name == TENSORFLOW_CONTAINER), mains[0])
    if main.exit_code:
        return main
    return next((c for c in containers if c.exit_code and not c.is_sidecar), main)
