"""The PodRunner of this machine: tasks of one job as pods of a node."""

import uuid
from collections.abc import Callable, Sequence

from tfyard.backends.base import PodRunner
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
    Wait,
    tensorflow_container,
)
from tfyard.model.names import ATTEMPT, REPLICA_INDEX, REPLICA_TYPE
from tfyard.node.node import Node
from tfyard.node.pod import ContainerState, Options, PodState
from tfyard.node.volumes import Volumes
from tfyard.planner.census import take_census
from tfyard.planner.restart import may_restart_in_place

PREEMPTED = "Preempted"
_ROLES = {role.lower(): role for role in ROLES}


class LocalRunner(PodRunner):
    """`adapt` turns the planner's pod into the one that runs here."""

    def __init__(
        self, node: Node, store: LocalStore, volumes: Volumes, adapt: Callable[[Manifest, Task], Manifest]
    ) -> None:
        self._node, self._store, self._volumes, self._adapt = node, store, volumes, adapt
        self.is_deleted = False

    async def observe(self, job: Job) -> Observed:  # noqa: ARG002
        return self._observe()

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:
        uids = {state.name: state.uid for state in self._node.states()}
        for action in actions:
            match action:
                case Create(manifest) if action.kind == "Pod" and action.name not in uids:
                    self._create(job, manifest)
                case Delete("Pod", name, force=force) if name in uids:
                    self._node.delete(uids[name], 0 if force else None)
                case DeleteJob():
                    self.is_deleted = True
        return Outcome(done=tuple(actions))

    def stop_all(self, *, force: bool) -> None:
        for state in self._node.states():
            self._node.delete(state.uid, 0 if force else None)

    def evict(self, task: str, grace: float | None = None) -> float | None:
        """As a preemption does. The grace period that it has; None if the task is not running."""
        states = (state for state in self._node.states() if state.phase in ("Pending", "Running"))
        found = (s for s in states if s.is_running and task_of(s.manifest).name == task)
        state = next(found, None)
        return None if state is None else self._node.evict(state.uid, PREEMPTED, grace)

    def tasks(self) -> dict[str, str]:
        """Uid of a pod -> the name of its task."""
        return {state.uid: task_of(state.manifest).name for state in self._node.states()}

    def _observe(self) -> Observed:
        return Observed(status=self._store.status, pods=tuple(map(_observed, self._node.states())))

    def _create(self, job: Job, manifest: Manifest) -> None:
        task, metadata = task_of(manifest), {**manifest["metadata"], "uid": uuid.uuid4().hex[:8]}
        pod = self._adapt({**manifest, "metadata": metadata}, task)
        options = Options(
            log_name=lambda container: log_name(task, container),
            main=tensorflow_container(manifest)["name"],
            may_restart=lambda: may_restart_in_place(job, take_census(job, self._observe())),
        )
        self._node.create(pod, self._volumes, options)


def task_of(pod: Manifest) -> Task:
    """The jobs of a config with resources may be called anything."""
    labels = pod["metadata"]["labels"]
    role = labels[REPLICA_TYPE]
    return Task(_ROLES.get(role, role), int(labels[REPLICA_INDEX]))


def log_name(task: Task, container: str) -> str:
    return task.name if container == TENSORFLOW_CONTAINER else f"{task.name}.{container}"


def _observed(state: PodState) -> Pod:
    main = tensorflow_container(state.manifest).get("name", "")
    shown = _shown(state.containers, main)
    ended = shown.ended
    restarts = sum(c.restarts for c in state.containers if c.name == main or _is_init(c))
    return Pod(
        name=state.name,
        uid=state.uid,
        task=task_of(state.manifest),
        attempt=int(state.manifest["metadata"]["annotations"].get(ATTEMPT, "0")),
        phase=state.phase,
        ready=state.is_ready,
        exit_code=shown.exit_code,
        message=shown.message,
        reason=state.reason or shown.reason or (ended.reason if ended else ""),
        run_started=ended.started if ended else None,
        run_ended=ended.at if ended else None,
        running_since=shown.started if shown.is_running and restarts else None,
        wait=Wait("CrashLoop", since=ended.at if ended else None) if state.restart_due else None,
        restarts=restarts,
        restart_due=state.restart_due,
        disrupted=bool(state.reason),
        started=state.started,
        deleting=state.deleting,
    )


def _shown(containers: Sequence[ContainerState], main: str) -> ContainerState:
    """The container whose end is the task's: the one that trains, unless an init container failed before it."""
    trainer = next(container for container in containers if container.name == main)
    if trainer.exit_code:
        return trainer
    return next((c for c in containers if c.exit_code and _is_init(c)), trainer)


def _is_init(container: ContainerState) -> bool:
    return container.is_init and not container.is_sidecar
