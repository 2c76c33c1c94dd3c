"""The facts about a pod that decisions depend on: how its program ended (`views/program.py`), whether it was asked
to, whether that was the cluster's fault, and what keeps it from running."""

import logging
import re

from msgspec.structs import replace

from tfyard.model import Phase, Pod, Task, Wait, WaitReason
from tfyard.model.container_reasons import (
    BEING_SET_UP,
    CRASH_LOOP,
    IMAGE_PROBLEMS,
    START_ERRORS,
    STATUS_UNKNOWN,
)
from tfyard.model.names import (
    MAX_LABEL,
    PLUGINS_GROUP,
    QUEUE_RETRIES,
    REPLICA_INDEX,
    REPLICA_TYPE,
    ROLE_LABELS,
    VOLCANO_GROUP,
)
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, PodView
from tfyard.views.program import Conclusion, conclude, holding, pod_of, will_restart

from .unreadable import describe, problem_of

log = logging.getLogger(__name__)

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
"""Pod reasons of a kubelet whose node shuts down, or that does not admit the pod. A kubelet that restarts may
reject even a pod that ran before. Evicted is not among them: see `_is_the_clusters_fault`."""
REJECTED, OUT_OF = "Pod was rejected: ", "OutOf"
"""Prefixes of messages and reasons of a kubelet that does not admit a pod."""
LOST = frozenset(("Unknown", STATUS_UNKNOWN))
"""Reasons of a container that ended unseen, because its node was rebooted or lost it: from containerd, with exit
code 255, and from the kubelet, with 137."""
OWN_DEADLINE = "DeadlineExceeded"
WAIT_REASONS: dict[str, WaitReason] = {
    CRASH_LOOP: "CrashLoop",
    "CreateContainerConfigError": "Config",
    **dict.fromkeys(IMAGE_PROBLEMS, "ImagePull"),
}
"""Other reasons are about the image if they contain that word, else about the start of the container."""
BACK_OFF = re.compile(r'Back-off pulling image ".*?": \w+: ')
"""Prefix of an error that a kubelet repeats during its back-off: it is removed, so that both are equal."""


def read_pod(view: PodView, before: Pod | None = None) -> Pod | None:
    """Like `to_pod`, for any pod that a server may have: one that cannot be read is a pod in an unknown state."""
    try:
        problem = problem_of(view)
        if not problem:
            return to_pod(view, before)
    except Exception as error:  # concerns this pod; an informer must not end
        log.debug("cannot read pod %s/%s", view.metadata.namespace, view.metadata.name, exc_info=True)
        problem = describe(error)
    return _unknown(view, problem)


def _unknown(view: PodView, problem: str) -> Pod | None:
    """The pod in an unknown state."""
    meta, task = view.metadata, _task(view.metadata)
    if task is None:
        return None
    return Pod(
        name=meta.name,
        uid=meta.uid,
        task=task,
        attempt=view.attempt,
        phase="Unknown",
        deleting=meta.deletion_timestamp,
        unreadable=problem,
    )


def _task(meta: ObjectMeta) -> Task | None:
    """The task that a pod is an attempt at, by its labels."""
    role, index = ROLE_LABELS.get(meta.labels.get(REPLICA_TYPE, "")), meta.labels.get(REPLICA_INDEX, "")
    return Task(role, int(index)) if role and index.isdecimal() and len(index) <= MAX_LABEL else None


def to_pod(view: PodView, before: Pod | None = None) -> Pod | None:
    """The model's pod; None if its labels are not those of a task. `before` is the last known state of this pod:
    its present version alone cannot always tell whether it ended before it was asked to."""
    task = _task(view.metadata)
    if task is None:
        return None
    status, program = view.status, conclude(view)
    pod = replace(
        pod_of(view, program, task, "Pending" if _is_never_started(view, program) else _phase(status.phase)),
        ready=any(c.type == "Ready" and c.status == "True" for c in status.conditions),
        wait=_wait(view, program),
        excused=_excused(program, before.excused if before else ()),
        restart_due=_is_restart_due(view, program),
        told_to_end=view.is_told_to_end,
        disrupted=view.taken_away is not None or _is_the_clusters_fault(view) or _is_lost(view, program),
        member=_is_member(view),
        waits=_is_member(view) and not view.spec.node_name,
        final=view.metadata.annotations.get(QUEUE_RETRIES) == "false",
    )
    if before is not None and _ended_by_itself(before):
        return _as_it_ended(pod, before)
    return replace(pod, asked_to_stop=_is_asked_to_stop(view, pod, before, program.end))


# --- whether it was asked to stop


def _is_asked_to_stop(
    view: PodView, pod: Pod, before: Pod | None, ended: ContainerStateTerminated | None
) -> bool:
    """Whether its deletion, or its job's suspension, came before the end of its program. If unclear, yes: it is
    less harmful to run a task again."""
    if view.is_stopped:
        return True
    meta = view.metadata
    if meta.deletion_timestamp is None:
        return False
    if pod.end and 0 < view.status.observed_generation < meta.generation:
        return False  # a deletion raises the generation, and the kubelet had not seen that yet
    if not pod.end or (before is not None and before.asked_to_stop):
        return True  # seen running when it was asked: better than a comparison of two machines' clocks
    grace = meta.deletion_grace_period_seconds
    if not grace or ended is None or ended.finished_at is None:
        return True  # with grace 0, the time is that of the kubelet's own last request
    left = (meta.deletion_timestamp - ended.finished_at).total_seconds()
    return left <= grace  # in whole seconds: within the same one it is unclear


def has_unwritten_end(last: Pod, *, is_deleted_here: bool) -> bool:
    """Whether the status may lack the end of a pod that is gone: finished pods are deleted without a warning, and
    running ones may be gone before the next pass. This operator writes down what it deletes; and a watch also
    reports a pod as gone that lost its labels."""
    has_finished = last.end == "Succeeded" and not last.asked_to_stop
    was_stopped = (
        last.phase != "Pending" and last.deleting is not None and (last.asked_to_stop or not last.end)
    )
    return has_finished or last.disrupted or (was_stopped and not is_deleted_here)


def _ended_by_itself(pod: Pod) -> bool:
    return bool(pod.end) and not pod.asked_to_stop


def _as_it_ended(pod: Pod, before: Pod) -> Pod:
    """The pod with the first known end: the program ends once, and later changes of the pod do not count."""
    return replace(
        pod,
        program="" if pod.phase == before.end else before.end,
        exit_code=before.exit_code,
        failed_init=before.failed_init,
        message=before.message,
        reason=before.reason,
        run_started=before.run_started,
        run_ended=before.run_ended,
        disrupted=before.disrupted,
    )


# --- how it ended


def _is_restart_due(view: PodView, program: Conclusion) -> bool:
    """Whether the kubelet is about to restart the program, or an init container before it: about a second after
    its end, then after a back-off that grows."""
    if view.is_over:
        return False
    return any(_is_backing_off(each) or _is_between_runs(view, each) for each in program.needed)


def _is_backing_off(status: ContainerStatus) -> bool:
    """Whether the kubelet waits before it starts the container again, or has just failed to start it."""
    waiting = status.state.waiting
    return waiting is not None and (waiting.reason == CRASH_LOOP or _start_error(status) is not None)


def _is_between_runs(view: PodView, status: ContainerStatus) -> bool:
    """Whether a container has ended and will restart. Not if its policy has rules: that is not known yet."""
    ended = status.state.terminated
    return ended is not None and will_restart(view, status.name, ended) is True


# --- whether the cluster caused it


def _is_the_clusters_fault(view: PodView) -> bool:
    """Whether a pod without a DisruptionTarget failed because of the cluster. An eviction is then the program's
    own fault: it used too much storage. But a program that never started cannot be at fault."""
    status = view.status
    if status.phase != "Failed" or status.reason == OWN_DEADLINE:
        return False
    is_rejected = status.message.startswith(REJECTED) or status.reason.startswith(OUT_OF)
    has_started = any(each.has_started for each in view.statuses)
    return is_rejected or status.reason in DISRUPTIONS or not has_started


def _is_lost(view: PodView, program: Conclusion) -> bool:
    """Whether the program has ended, for good or until its restart, because its node was rebooted. A reason of
    the whole pod takes precedence."""
    ended, is_running = program.last_end, program.program.state.running is not None
    return ended is not None and ended.reason in LOST and not is_running and not view.status.reason


def _excused(program: Conclusion, known: tuple[str, ...]) -> tuple[str, ...]:
    """Restarts that a node caused, with those of earlier versions of the pod: later ends replace them there."""
    statuses = (each for each in program.needed if _is_excused(each, is_init=each is not program.program))
    return tuple(sorted({*known, *(f"{each.name}/{each.restart_count}" for each in statuses)}))


def _is_excused(status: ContainerStatus, *, is_init: bool) -> bool:
    """Whether its last restart followed a reboot of its node. An init container that succeeded runs again only in
    a pod that is set up anew. A kubelet that lost a container counts the restart before it happens."""
    state, last = status.state, status.last_state.terminated
    if not status.restart_count:
        return False
    if STATUS_UNKNOWN in (state.terminated.reason if state.terminated else "", last.reason if last else ""):
        return True
    is_by_node = last is not None and (last.reason in LOST or (is_init and not last.exit_code))
    return is_by_node and (state.waiting is None or not state.waiting.reason)


# --- what keeps it from running


def _wait(view: PodView, program: Conclusion) -> Wait | None:
    """What the pod waits for: the scheduler reports it in the pod's conditions, the kubelet in its containers. The
    wait of a pod that is being set up has no message: `setup_events` looks for one if that takes long. Once the
    program runs or has ended, other containers do not matter."""
    if view.is_over:
        return None
    if refused := next(filter(None, map(_start_error, program.needed)), None):
        return Wait("Start", refused.message or refused.reason, refused.finished_at, failed=True)
    if program.program.state.running or program.program.state.terminated:
        return None
    if not view.spec.node_name:
        return _wait_for_a_node(view)
    waiting = (each.state.waiting for each in view.statuses)
    reported = next((each for each in waiting if each and each.reason not in BEING_SET_UP), None)
    if reported is None:
        is_set_up = view.status.start_time is None or _is_restart_due(view, program)
        return None if is_set_up or holding(view) else Wait("Mount", since=view.status.start_time)
    return _wait_for_the_kubelet(view, program, reported)


def _start_error(status: ContainerStatus) -> ContainerStateTerminated | None:
    """The failed start of a container, if its last start failed."""
    ended = status.state.terminated or status.last_state.terminated
    is_error = ended is not None and ended.reason in START_ERRORS and status.state.running is None
    return ended if is_error else None


def _is_never_started(view: PodView, program: Conclusion) -> bool:
    """Whether the program of a Running pod never started: kubelets report Running while they retry the start."""
    return view.status.phase == "Running" and _start_error(program.program) is not None


def _wait_for_a_node(view: PodView) -> Wait | None:
    condition = view.unscheduled
    if condition is None or condition.reason not in ("Unschedulable", "SchedulingGated"):
        return None
    word: WaitReason = "Unschedulable" if condition.reason == "Unschedulable" else "SchedulingGated"
    is_claim = "persistentvolumeclaim" in condition.message.lower()
    return Wait("VolumeClaim" if is_claim else word, condition.message, view.metadata.creation_timestamp)


def _wait_for_the_kubelet(view: PodView, program: Conclusion, reported: ContainerStateWaiting) -> Wait:
    ended = program.program.last_state.terminated
    since = (ended.finished_at if ended else None) or view.status.start_time
    word = WAIT_REASONS.get(reported.reason) or ("ImagePull" if "Image" in reported.reason else "Start")
    return Wait(word, BACK_OFF.sub("", reported.message) or reported.reason, since)


# --- the rest


def _is_member(view: PodView) -> bool:
    meta = view.metadata
    is_marked = PLUGINS_GROUP in meta.labels or VOLCANO_GROUP in meta.annotations
    return is_marked or view.spec.scheduling_group is not None


def _phase(text: str) -> Phase:
    known: dict[str, Phase] = {"Running": "Running", "Succeeded": "Succeeded", "Failed": "Failed"}
    return known.get(text, "Unknown" if text == "Unknown" else "Pending")
