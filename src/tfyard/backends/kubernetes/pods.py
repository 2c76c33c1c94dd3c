"""What decisions depend on of a pod: how its program ended, whether it was asked to, whose fault it was, and what
keeps it from running.

A task is its training container: what sidecars do, and what becomes of the pod afterwards, says nothing about it.
"""

import re
from datetime import datetime, timedelta

from msgspec.structs import replace

from tfyard.model import (
    END_AT_ONCE,
    ROLES,
    TENSORFLOW_CONTAINER,
    Phase,
    Pod,
    ProgramEnd,
    Task,
    Wait,
    WaitReason,
)
from tfyard.model.names import (
    ATTEMPT,
    PLUGINS_GROUP,
    QUEUE_RETRIES,
    REPLICA_INDEX,
    REPLICA_TYPE,
    VOLCANO_GROUP,
)

from .views import ContainerStatus, PodCondition, PodStatus, PodView, Terminated, Waiting

ROLE_LABELS = {role.lower(): role for role in ROLES}
TERMINAL = ("Succeeded", "Failed")
DISRUPTIONS = frozenset(
    (
        "NodeLost",
        "NodeShutdown",
        "Shutdown",
        "Terminated",
        "Preempting",
        "Preempted",
        "NodeAffinity",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
    )
)
"""Pod reasons by which a kubelet says that the node ended, or does not admit the pod. A kubelet that restarts may
refuse even a pod that ran before. Evicted is not among them: see `_is_the_clusters_fault`."""
REJECTED, OUT_OF = "Pod was rejected: ", "OutOf"
"""How messages and reasons of a kubelet that does not admit a pod begin."""
NOT_ENDED, NOT_TAKEN = Terminated(), PodCondition()
OWN_DEADLINE = "DeadlineExceeded"
CRASH_LOOP = "CrashLoopBackOff"
BEING_SET_UP = ("", "ContainerCreating", "PodInitializing")
WAIT_REASONS: dict[str, WaitReason] = {
    CRASH_LOOP: "CrashLoop",
    "CreateContainerConfigError": "Config",
    "RegistryUnavailable": "ImagePull",
    "SignatureValidationFailed": "ImagePull",
}
"""Other reasons are about the image if they say so, else about the start of the container."""
BACK_OFF = re.compile(r'Back-off pulling image ".*?": \w+: ')
"""The kubelet alternates between an error and its back-off, which repeats the error: the same to a reader."""


def to_pod(view: PodView, before: Pod | None = None) -> Pod | None:
    """The model's pod; None for one whose labels are not those of a task. `before` is what was known of this very
    pod: the last version alone cannot always tell whether it ended before it was asked to."""
    labels = view.metadata.labels
    role, index = ROLE_LABELS.get(labels.get(REPLICA_TYPE, "")), labels.get(REPLICA_INDEX, "")
    if role is None or not index.isdigit():
        return None
    status, trainer = view.status, _trainer(view)
    ended = _end(view, trainer) or _end_before(view, trainer)
    restarts, disruption = _restarts(view, trainer), _disruption(status)
    end, taken = ended or NOT_ENDED, disruption or NOT_TAKEN
    pod = Pod(
        name=view.metadata.name,
        uid=view.metadata.uid,
        task=Task(role, int(index)),
        attempt=_attempt(view.metadata.annotations),
        phase=_phase(status.phase),
        program=_program(view, trainer),
        ready=any(c.type == "Ready" and c.status == "True" for c in status.conditions),
        exit_code=_exit_code(status, ended),
        message=status.message or taken.message or end.message,
        reason=status.reason or taken.reason or end.reason,
        run_started=end.started_at,
        run_ended=end.finished_at,
        running_since=_running_since(trainer) if restarts else None,
        wait=_wait(view, trainer),
        restarts=restarts,
        restart_due=_is_restart_due(view, trainer),
        disrupted=disruption is not None or _is_the_clusters_fault(status),
        member=_is_member(view),
        waits=_is_member(view) and not view.spec.node_name,
        final=view.metadata.annotations.get(QUEUE_RETRIES) == "false",
        started=status.start_time,
        lingers_since=_lingers_since(view, trainer),
        deleting=view.metadata.deletion_timestamp,
    )
    if before is not None and _ended_by_itself(before):
        return _as_it_ended(pod, before)
    return replace(pod, asked_to_stop=_is_asked_to_stop(view, pod, before))


# --- whether it was asked


def _is_asked_to_stop(view: PodView, pod: Pod, before: Pod | None) -> bool:
    """Whether its deletion came before the end of its program. In doubt it did: to run a task again is the lesser
    harm."""
    meta = view.metadata
    if meta.deletion_timestamp is None:
        return False
    if pod.end and 0 < view.status.observed_generation < meta.generation:
        return False  # a deletion raises the generation, and the kubelet had not seen that yet
    if not pod.end or (before is not None and before.asked_to_stop):
        return True  # seen running when it was asked: better than a comparison of two machines' clocks
    grace, ended = meta.deletion_grace_period_seconds, _end(view, _trainer(view))
    if not grace or ended is None or ended.finished_at is None:
        return True  # with grace 0, the time is that of the kubelet's own last request
    asked_at = meta.deletion_timestamp - timedelta(seconds=grace)
    return ended.finished_at >= asked_at  # in whole seconds: within the same one nobody knows


def _ended_by_itself(pod: Pod) -> bool:
    return bool(pod.end) and not pod.asked_to_stop


def _as_it_ended(pod: Pod, before: Pod) -> Pod:
    """The program of a pod ends once: what becomes of its other containers and its node changes nothing."""
    return replace(
        pod,
        program="" if pod.phase == before.end else before.end,
        exit_code=before.exit_code,
        message=before.message,
        reason=before.reason,
        run_started=before.run_started,
        run_ended=before.run_ended,
        disrupted=before.disrupted,
    )


# --- how it ended


def _is_restart_due(view: PodView, trainer: ContainerStatus | None) -> bool:
    """The kubelet restarts the program, or what must run before it, and waits longer before each restart."""
    found = (*_init_containers(view), *((trainer,) if trainer else ()))
    return any(each.state.waiting and each.state.waiting.reason == CRASH_LOOP for each in found)


def _trainer(view: PodView) -> ContainerStatus | None:
    """The status of the container that trains: the one of that name, else the first."""
    names = [container.name for container in view.spec.containers]
    named = TENSORFLOW_CONTAINER if TENSORFLOW_CONTAINER in names or not names else names[0]
    statuses = view.status.container_statuses
    return next((each for each in statuses if each.name == named), None)


def _program(view: PodView, trainer: ContainerStatus | None) -> ProgramEnd:
    """Where it differs from the phase. A kubelet that ends a whole pod says why in its reason; then the exit code
    only says how the program reacted."""
    ended, status = trainer.state.terminated if trainer else None, view.status
    if trainer is None or ended is None or (status.phase == "Failed" and status.reason):
        return ""
    if status.phase not in TERMINAL and _will_restart(view, trainer.name, ended.exit_code):
        return ""
    end: ProgramEnd = "Failed" if ended.exit_code else "Succeeded"
    return "" if end == status.phase else end


def _will_restart(view: PodView, name: str, exit_code: int) -> bool:
    """Whether the kubelet starts a container again, by its own policy or else the pod's. If it has rules for exit
    codes, the phase of the pod will tell."""
    own = next((each for each in view.spec.containers if each.name == name), None)
    if own is not None and own.restart_policy_rules:
        return True
    policy = (own.restart_policy if own else "") or view.spec.restart_policy
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _end(view: PodView, trainer: ContainerStatus | None) -> Terminated | None:
    """Of the program; if an init container failed before it, the reason is there."""
    ends = (each.state.terminated for each in _init_containers(view))
    failed = next((ended for ended in ends if ended and ended.exit_code), None)
    return (trainer.state.terminated if trainer else None) or failed


def _end_before(view: PodView, trainer: ContainerStatus | None) -> Terminated | None:
    """Of the run before the present one, or before the restart that is waited for."""
    if trainer is not None and trainer.last_state.terminated:
        return trainer.last_state.terminated
    ends = (each.last_state.terminated for each in _init_containers(view))
    return next((ended for ended in ends if ended), None)


def _init_containers(view: PodView) -> list[ContainerStatus]:
    """Without the sidecars among them, which run beside the program."""
    sidecars = {each.name for each in view.spec.init_containers if each.restart_policy == "Always"}
    return [each for each in view.status.init_container_statuses if each.name not in sidecars]


def _restarts(view: PodView, trainer: ContainerStatus | None) -> int:
    return sum(each.restart_count for each in (*_init_containers(view), *((trainer,) if trainer else ())))


def _running_since(trainer: ContainerStatus | None) -> datetime | None:
    running = trainer.state.running if trainer else None
    return running.started_at if running else None


def _exit_code(status: PodStatus, ended: Terminated | None) -> int | None:
    """A code of 0 does not explain why a pod has failed: the program was stopped, and took it well."""
    if ended is None or (ended.exit_code == 0 and status.phase == "Failed" and status.reason):
        return None
    return ended.exit_code


def _lingers_since(view: PodView, trainer: ContainerStatus | None) -> datetime | None:
    """Sidecars among the init containers end by themselves: the kubelet sees to it."""
    is_over = view.status.phase in TERMINAL or view.spec.active_deadline_seconds == END_AT_ONCE
    if trainer is None or trainer.state.terminated is None or is_over or not _program(view, trainer):
        return None
    others = (each for each in view.status.container_statuses if each.name != trainer.name)
    return trainer.state.terminated.finished_at if any(_goes_on(view, each) for each in others) else None


def _goes_on(view: PodView, container: ContainerStatus) -> bool:
    ended = container.state.terminated
    return ended is None or _will_restart(view, container.name, ended.exit_code)


# --- whose fault it was


def _is_the_clusters_fault(status: PodStatus) -> bool:
    """Without a DisruptionTarget. Then an eviction is the program's own fault: it used more storage than it may.
    But whoever never started anything cannot be at fault."""
    if status.phase != "Failed" or status.reason == OWN_DEADLINE:
        return False
    is_rejected = status.message.startswith(REJECTED) or status.reason.startswith(OUT_OF)
    return is_rejected or status.reason in DISRUPTIONS or not _has_started(status)


def _disruption(status: PodStatus) -> PodCondition | None:
    """By which the cluster says that it takes the pod away, who does, and why."""
    found = (c for c in status.conditions if c.type == "DisruptionTarget" and c.status == "True")
    return next(found, None)


def _has_started(status: PodStatus) -> bool:
    containers = (*status.container_statuses, *status.init_container_statuses)
    return any(each.has_started for each in containers)


# --- what keeps it from running


def _wait(view: PodView, trainer: ContainerStatus | None) -> Wait | None:
    """The scheduler's words are in the pod's conditions, the kubelet's in its containers. A pod that is being set
    up waits in silence: `setup_events` asks about it if that takes long. As long as the program runs, nobody waits
    for the other containers."""
    if view.status.phase in TERMINAL or (trainer and trainer.state.running):
        return None
    if not view.spec.node_name:
        return _wait_for_a_node(view)
    statuses = (*view.status.init_container_statuses, *view.status.container_statuses)
    waiting = (each.state.waiting for each in statuses)
    found = next((each for each in waiting if each and each.reason not in BEING_SET_UP), None)
    if found is None:
        return Wait("Mount", since=view.status.start_time) if view.status.start_time else None
    return _wait_for_the_kubelet(view, trainer, found)


def _wait_for_a_node(view: PodView) -> Wait | None:
    found = (c for c in view.status.conditions if c.type == "PodScheduled" and c.status == "False")
    condition = next(found, None)
    if condition is None or condition.reason not in ("Unschedulable", "SchedulingGated"):
        return None
    word: WaitReason = "Unschedulable" if condition.reason == "Unschedulable" else "SchedulingGated"
    is_claim = "persistentvolumeclaim" in condition.message.lower()
    return Wait("VolumeClaim" if is_claim else word, condition.message, view.metadata.creation_timestamp)


def _wait_for_the_kubelet(view: PodView, trainer: ContainerStatus | None, found: Waiting) -> Wait:
    ended = trainer.last_state.terminated if trainer else None
    since = (ended.finished_at if ended else None) or view.status.start_time
    word = WAIT_REASONS.get(found.reason) or ("ImagePull" if "Image" in found.reason else "Start")
    return Wait(word, BACK_OFF.sub("", found.message) or found.reason, since)


# --- the rest


def _is_member(view: PodView) -> bool:
    meta = view.metadata
    is_marked = PLUGINS_GROUP in meta.labels or VOLCANO_GROUP in meta.annotations
    return is_marked or view.spec.scheduling_group is not None


def _attempt(annotations: dict[str, str]) -> int:
    """0 without the annotation: another operator created the pod."""
    text = annotations.get(ATTEMPT, "0")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _phase(text: str) -> Phase:
    known: dict[str, Phase] = {"Running": "Running", "Succeeded": "Succeeded", "Failed": "Failed"}
    return known.get(text, "Unknown" if text == "Unknown" else "Pending")
