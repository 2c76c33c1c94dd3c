"""The status that a kubelet reports, as patches. Pure.

Conditions merge by type (the patch is strategic), so those of others, such as DisruptionTarget, stay.
Container statuses are replaced as a whole: the API keeps that list atomic.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tfyard.kube.times import timestamp
from tfyard.kubelet.runtime import Container, ContainerState, Exited, Pod, PodState, Running, Waiting

JSON = dict[str, Any]
INITIALIZING = ContainerState(Waiting("PodInitializing"))


def patch(pod: Pod, state: PodState, *conditions: JSON) -> JSON:
    """With the uid: a pod that was re-created under the same name must not get the status of the earlier one."""
    status: JSON = {
        "observedGeneration": pod.metadata.generation,
        "phase": state.phase,
        **_addresses(state.ip),
        "hostIP": state.host_ip,
        "startTime": timestamp(state.started),
        "conditions": [*_conditions(pod, state), *conditions],
    }
    if state.disruption:
        status["conditions"].append(disruption("TerminationByKubelet", state.disruption, state.changed))
    is_rejected = state.phase == "Failed" and not state.containers
    if not is_rejected:
        status["containerStatuses"] = _statuses(pod, pod.spec.containers, state)
    if pod.spec.init_containers and not is_rejected:
        status["initContainerStatuses"] = _statuses(pod, pod.spec.init_containers, state)
    if pod.spec.ephemeral_containers and not is_rejected:
        status["ephemeralContainerStatuses"] = _statuses(pod, pod.spec.ephemeral_containers, state)
    if state.reason:
        status |= {"reason": state.reason, "message": state.message}
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def _addresses(ip: str) -> JSON:
    """The list is merged by address: an earlier one would stay."""
    return {"podIP": ip, "podIPs": [{"$patch": "replace"}, {"ip": ip}]} if ip else {}


def disruption(reason: str, message: str, at: datetime) -> JSON:
    """The condition of a pod that is taken away: the end is not its own fault."""
    said = {"reason": reason, "message": message, "lastTransitionTime": timestamp(at)}
    return {"type": "DisruptionTarget", "status": "True", **said}


def _conditions(pod: Pod, state: PodState) -> list[JSON]:
    """A finished pod is not ready because it is complete; kubectl and controllers read that reason. None takes
    away an earlier one: the patch is merged."""
    reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(state.phase, "ContainersNotReady")
    main = [state.containers.get(container.name, INITIALIZING) for container in pod.spec.containers]
    is_ready = all(container.is_ready for container in main)
    known = {
        "PodReadyToStartContainers": True,
        "Initialized": INITIALIZING not in main,
        "Ready": is_ready,
        "ContainersReady": is_ready,
    }
    return [
        {
            "type": kind,
            "status": str(yes),
            "lastTransitionTime": _since(pod, kind, str(yes)) or timestamp(state.changed),
            "reason": None if yes else reason,
        }
        for kind, yes in known.items()
    ]


def _since(pod: Pod, kind: str, status: str) -> str | None:
    """Controllers count how long a pod has been ready, so a condition that holds on keeps its time."""
    known = (each for each in pod.status.conditions if (each.type, each.status) == (kind, status))
    return next((each.last_transition_time for each in known), None)


def _statuses(pod: Pod, containers: Iterable[Container], state: PodState) -> list[JSON]:
    return [_status(pod, each, state.containers.get(each.name, INITIALIZING)) for each in containers]


def _status(pod: Pod, container: Container, state: ContainerState) -> JSON:
    status = {
        "name": container.name,
        "image": container.image,
        "imageID": f"tfyard://{container.image}",
        "containerID": f"tfyard://{pod.metadata.uid}/{container.name}/{state.restarts}",
        "ready": state.is_ready,
        "started": isinstance(state.current, Running) and state.is_started,
        "restartCount": state.restarts,
        "state": _current(state.current),
    }
    return {**status, "lastState": _current(state.last)} if state.last else status


def _current(state: Waiting | Running | Exited) -> JSON:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        case Running(since):
            return {"running": {"startedAt": timestamp(since)}}
        case Exited(code, started, finished, reason, message):
            ended = {"exitCode": code, "reason": reason or ("Error" if code else "Completed")}
            times = {"startedAt": timestamp(started), "finishedAt": timestamp(finished)}
            return {"terminated": {**ended, **times, **({"message": message} if message else {})}}
