"""The PodRunner of this machine: it runs the tasks of one job as pods of a node."""

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from tfyard.backends.base import PodRunner
from tfyard.backends.local.node import LocalNode, LocalPod, PodOptions
from tfyard.backends.local.store import LocalStore
from tfyard.model import (
    TENSORFLOW_CONTAINER,
    Action,
    Amend,
    Create,
    Delete,
    DeleteJob,
    Job,
    LastLine,
    Manifest,
    Observed,
    Outcome,
    Pod,
    Task,
    Wait,
    preparations,
    tensorflow_container,
)
from tfyard.model.container_reasons import CRASH_LOOP
from tfyard.model.names import REPLICA_INDEX, REPLICA_TYPE, ROLE_LABELS
from tfyard.node import states
from tfyard.node.states import Exited, PodState
from tfyard.planner import Site, may_restart_in_place
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import (
    Container,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    PodSpec,
    PodStatus,
    PodView,
    State,
)
from tfyard.views.program import conclude, pod_of

PREEMPTED, RESTARTED = "Preempted", "Restarted"
"""Reasons of tasks that are taken away: as a preemption does it, and by `tfyard restart`."""


class LocalRunner(PodRunner):
    """Runs pods on this machine; `adapt` changes the planner's pod for that. `last_line`: the last line of a
    container, by the uid of its pod."""

    def __init__(
        self,
        node: LocalNode,
        store: LocalStore,
        site: Site,
        adapt: Callable[[Manifest, Task], Manifest],
        last_line: Callable[[str, str], LastLine | None] = lambda _uid, _container: None,
    ) -> None:
        self._node, self._store, self._site, self._adapt = node, store, site, adapt
        self._last_line = last_line
        self.is_deleted = False

    async def observe(self, job: Job) -> Observed:
        observed = self._observe()
        return replace(observed, lines=self._lines()) if job.run_policy.stall else observed

    def _lines(self) -> dict[str, LastLine]:
        pods = ((uid, each.pod.manifest) for uid, each in self._node.pods.items())
        lines = {uid: self._last_line(uid, tensorflow_container(pod)["name"]) for uid, pod in pods}
        return {uid: line for uid, line in lines.items() if line}

    async def apply(self, job: Job, actions: Sequence[Action]) -> Outcome:
        pods = {each.pod.name: each for each in self._node.pods.values()}
        for action in actions:
            match action:
                case Create(manifest) if action.kind == "Pod" and action.name not in pods:
                    self._create(job, manifest)
                case Delete("Pod", name, force=force) if name in pods:
                    self._delete(pods[name], force=force)
                case Amend("Pod", name) if name in pods:  # to end it in place: logs stay here anyway
                    self._delete(pods[name])
                case DeleteJob():
                    self.is_deleted = True
        return Outcome(done=tuple(actions))

    def stop_all(self, *, force: bool, by_keyboard: bool = False) -> None:
        """Stops all tasks. A parameter server has nothing to save, and its `join` never sees SIGINT, so Ctrl-C
        asks it by SIGTERM, too."""
        for each in [*self._node.pods.values()]:
            self._delete(each, force=force, by_keyboard=by_keyboard and _task(each).role != "PS")

    def evict(self, task: str, reason: str, grace: float | None = None) -> float | None:
        """Takes a task away; returns its grace period, or None if the task is not running."""
        chosen = [each for each in self._node.pods.values() if each.is_running and _task(each).name == task]
        return self._node.evict(chosen[0].pod.uid, reason, grace) if chosen else None

    def tasks(self) -> dict[str, str]:
        """Uid of a pod -> the name of its task."""
        return {uid: _task(each).name for uid, each in self._node.pods.items()}

    def held_by(self, step: str) -> list[str]:
        """The tasks whose init container of this name runs."""
        pods = self._node.pods.values()
        return [
            _task(each).name for each in pods if step in each.pod.every and each.pod.every[step].is_running
        ]

    def _observe(self) -> Observed:
        pods = (self._observed(each) for each in self._node.pods.values())
        return Observed(status=self._store.status, pods=tuple(pods))

    def _observed(self, each: LocalPod) -> Pod:
        seen = observed(each.pod.manifest, each.pod.state())
        due = seen.restart_due and each.deleting is None
        return replace(seen, restart_due=due, deleting=each.deleting, asked_to_stop=each.asked_to_stop)

    def _create(self, job: Job, manifest: Manifest) -> None:
        task, metadata = task_of(manifest), {**manifest["metadata"], "uid": uuid.uuid4().hex[:8]}
        pod = self._adapt({**manifest, "metadata": metadata}, task)
        counted = _counted(pod)

        def may_restart(container: str) -> bool:
            is_free = container not in counted
            return is_free or may_restart_in_place(job, self._observe(), self._site, datetime.now(UTC))

        self._node.create(
            pod, PodOptions(log_name=lambda name: log_name(task, name), may_restart=may_restart)
        )

    def _delete(self, each: LocalPod, *, force: bool = False, by_keyboard: bool = False) -> None:
        if each.deleting is None:
            each.asked_to_stop = not observed(each.pod.manifest, each.pod.state()).end
        self._node.delete(each.pod.uid, 0 if force else None, by_keyboard=by_keyboard)


def _task(each: LocalPod) -> Task:
    return task_of(each.pod.manifest)


def task_of(pod: Manifest) -> Task:
    """The task of a pod; roles of a config with resources may have any name."""
    labels = pod["metadata"]["labels"]
    role = labels[REPLICA_TYPE]
    return Task(ROLE_LABELS.get(role, role), int(labels[REPLICA_INDEX]))


def log_name(task: Task, container: str) -> str:
    return task.name if container == TENSORFLOW_CONTAINER else f"{task.name}.{container}"


def observed(manifest: Manifest, state: PodState) -> Pod:
    view = _view(manifest, state)
    program = conclude(view)
    pod = pod_of(view, program, task_of(manifest), state.phase)
    is_due = not state.reason and any(state.containers[name].restart_due for name in _counted(manifest))
    containers = [state.containers[each.name] for each in view.spec.containers]
    return replace(
        pod,
        ready=state.phase == "Running" and all(each.is_ready for each in containers),
        wait=Wait("CrashLoop", since=pod.run_ended) if is_due else None,
        restart_due=is_due,
        disrupted=state.reason in (PREEMPTED, RESTARTED),
    )


def _view(manifest: Manifest, state: PodState) -> PodView:
    """The pod as a kubelet would report it. This node knows what else is concluded from policies and rules: a
    container whose restart is due waits for it, and others that have ended will not restart."""
    inits, main = manifest["spec"].get("initContainers") or (), manifest["spec"]["containers"]
    spec = PodSpec(
        restart_policy="Never",
        containers=tuple(Container(each["name"]) for each in main),
        init_containers=tuple(Container(each["name"], each.get("restartPolicy") or "") for each in inits),
    )
    status = PodStatus(
        state.phase,
        state.reason,
        state.message,
        state.started,
        container_statuses=tuple(_status(each.name, state) for each in spec.containers),
        init_container_statuses=tuple(_status(each.name, state) for each in spec.init_containers),
    )
    meta = manifest["metadata"]
    return PodView(ObjectMeta(meta["name"], uid=meta["uid"], annotations=meta["annotations"]), spec, status)


def _status(name: str, state: PodState) -> ContainerStatus:
    known = state.containers[name]
    if known.restart_due:
        return ContainerStatus(
            name, known.restarts, State(waiting=ContainerStateWaiting(CRASH_LOOP)), _state(known.ended)
        )
    return ContainerStatus(name, known.restarts, _state(known.current), _state(known.last))


def _state(state: states.Waiting | states.Running | Exited | None) -> State:
    match state:
        case Exited(code, started, finished):
            return State(
                terminated=ContainerStateTerminated(code, state.why, state.message, started, finished)
            )
        case states.Running(since):
            return State(running=ContainerStateRunning(since))
        case states.Waiting(reason, message):
            return State(waiting=ContainerStateWaiting(reason, message))
        case _:
            return State()


def _counted(pod: Manifest) -> list[str]:
    """The containers whose ends count for the task: init containers and the training container, not sidecars."""
    return [*preparations(pod), str(tensorflow_container(pod)["name"])]
