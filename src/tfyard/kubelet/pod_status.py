"""The status that a kubelet reports, as patches. Pure.

Conditions merge by type (the patch is strategic), so those of other clients, such as DisruptionTarget, stay.
Container statuses are replaced as a whole: the API keeps that list atomic.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tfyard.kube.times import timestamp
from tfyard.node.states import ContainerState, Exited, PodState, Running, Waiting
from tfyard.views.pods import ContainerOnNode, PodOnNode

JSON = dict[str, Any]
INITIALIZING = ContainerState(Waiting("PodInitializing"))


def patch(pod: PodOnNode, state: PodState, *conditions: JSON) -> JSON:
    """Patch of a pod's status. It has the uid: a pod re-created under the same name must not get this status."""
    status: JSON = {
        "observedGeneration": pod.metadata.generation,
        "phase": state.phase,
        **_addresses(state.ip),
        "hostIP": state.host_ip,
        "startTime": timestamp(state.started),
        "conditions": [*_conditions(pod, state), *conditions],
    }
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
    """Fields of the pod's address. The list is merged by address: an earlier one would stay."""
    return {"podIP": ip, "podIPs": [{"$patch": "replace"}, {"ip": ip}]} if ip else {}


def disruption(reason: str, message: str, at: datetime) -> JSON:
    """The condition of a pod that is taken away: the end is not its own fault."""
    cause = {"reason": reason, "message": message, "lastTransitionTime": timestamp(at)}
    return {"type": "DisruptionTarget", "status": "True", **cause}


def _conditions(pod: PodOnNode, state: PodState) -> list[JSON]:
    """Conditions of the pod. A finished pod is not ready because it is complete; kubectl and controllers read that
    reason. None removes an earlier one: the patch is merged."""
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


def _since(pod: PodOnNode, kind: str, status: str) -> str | None:
    """Time of a condition that has not changed: controllers count how long a pod has been ready."""
    known = (each for each in pod.status.conditions if (each.type, each.status) == (kind, status))
    return next((timestamp(each.last_transition_time) for each in known if each.last_transition_time), None)


def _statuses(pod: PodOnNode, containers: Iterable[ContainerOnNode], state: PodState) -> list[JSON]:
    return [_status(pod, each, state.containers.get(each.name, INITIALIZING)) for each in containers]


def _status(pod: PodOnNode, container: ContainerOnNode, state: ContainerState) -> JSON:
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
        case Exited():
            ended = {"exitCode": state.code, "reason": state.why}
            times = {"startedAt": timestamp(state.started), "finishedAt": timestamp(state.finished)}
            return {"terminated": {**ended, **times, **({"message": state.message} if state.message else {})}}
