"""The status that a kubelet would report, as patches. Pure.

Conditions merge by type (the patch is strategic), so those of others, such as DisruptionTarget, stay.
Container statuses are replaced as a whole: the API keeps that list atomic.
"""

from typing import Any

import msgspec

from tfyard.kubelet.script import Container, Pod

JSON = dict[str, Any]
SIGKILLED = 137


class Exit(msgspec.Struct, frozen=True):
    code: int
    at: str
    reason: str = ""
    message: str = ""


class Run(msgspec.Struct, frozen=True):
    """One run of a pod's containers: the how-manieth, since when, and how the one before it ended."""

    ip: str
    since: str = ""
    number: int = 0
    before: Exit | None = None


def main_container(pod: Pod) -> str:
    names = [container.name for container in pod.spec.containers]
    return "tensorflow" if "tensorflow" in names else names[0]


def waiting(pod: Pod, run: Run, reason: str) -> JSON:
    """Not (or not again) running: images on their way, or the pause of a crash loop."""
    state = {"waiting": {"reason": reason, "message": f"scripted: {reason}"}}
    containers = [_status(pod, container, state, run) for container in pod.spec.containers]
    phase = "Running" if run.number else "Pending"
    return _patch(
        pod, run, {"phase": phase, **_conditions(False, run.since), "containerStatuses": containers}
    )


def running(pod: Pod, run: Run, ready: bool) -> JSON:
    state = {"running": {"startedAt": run.since}}
    containers = [_status(pod, container, state, run, ready) for container in pod.spec.containers]
    return _patch(
        pod, run, {"phase": "Running", **_conditions(ready, run.since), "containerStatuses": containers}
    )


def finished(pod: Pod, run: Run, end: Exit) -> JSON:
    ended = [
        _status(pod, container, _terminated(pod, container, run, end), run)
        for container in pod.spec.containers
    ]
    phase = "Succeeded" if end.code == 0 else "Failed"
    return _patch(pod, run, {"phase": phase, **_conditions(False, end.at, phase), "containerStatuses": ended})


def init_failed(pod: Pod, run: Run, end: Exit) -> JSON:
    """The first init container failed, and restartPolicy Never makes that the end of the pod."""
    blocked = {"waiting": {"reason": "PodInitializing"}}
    containers = [_status(pod, container, blocked, run) for container in pod.spec.containers]
    patch = _patch(
        pod, run, {"phase": "Failed", **_conditions(False, end.at), "containerStatuses": containers}
    )
    first = pod.spec.init_containers[0]
    patch["status"]["initContainerStatuses"] = [
        _status(pod, first, {"terminated": _ended(run, end, end.code)}, run)
    ]
    return patch


def evicted(pod: Pod, run: Run, end: Exit) -> JSON:
    """Node pressure: the pod stays, Failed, and says that the disruption was not its own fault."""
    patch = finished(pod, run, end)
    patch["status"] |= {"reason": "Evicted", "message": end.message}
    patch["status"]["conditions"].append(disruption("TerminationByKubelet", end))
    return patch


def disruption(reason: str, end: Exit) -> JSON:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": end.message,
        "lastTransitionTime": end.at,
    }


def _patch(pod: Pod, run: Run, status: JSON) -> JSON:
    """With the uid: a pod that was re-created under the same name must not get its forerunner's fate."""
    addresses = [{"$patch": "replace"}, {"ip": run.ip}]  # merged by address, an earlier one would stay
    where = {"podIP": run.ip, "podIPs": addresses, "hostIP": "127.0.0.1", "startTime": run.since}
    inits = [
        _status(pod, container, {"terminated": _ended(run, Exit(0, run.since), 0)}, run, True)
        for container in pod.spec.init_containers
    ]
    return {
        "metadata": {"uid": pod.metadata.uid},
        "status": {**where, **status, **({"initContainerStatuses": inits} if inits else {})},
    }


def _conditions(ready: bool, at: str, phase: str = "") -> JSON:
    """A finished pod is not ready because it is complete; kubectl and controllers read that reason."""
    why = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
    known = {"PodReadyToStartContainers": True, "Initialized": True, "Ready": ready, "ContainersReady": ready}
    conditions = [
        {"type": kind, "status": str(value), "lastTransitionTime": at, **({} if value else {"reason": why})}
        for kind, value in known.items()
    ]
    return {"conditions": conditions}


def _status(pod: Pod, container: Container, state: JSON, run: Run, ready: bool = False) -> JSON:
    status = {
        "name": container.name,
        "image": container.image,
        "imageID": f"scripted://{container.image}",
        "containerID": f"scripted://{pod.metadata.uid}/{container.name}/{run.number}",
        "ready": ready,
        "started": "running" in state,
        "restartCount": run.number,
        "state": state,
    }
    if run.before:
        status["lastState"] = _terminated(pod, container, run, run.before)
    return status


def _terminated(pod: Pod, container: Container, run: Run, end: Exit) -> JSON:
    alone = container.name == main_container(pod) or end.code == SIGKILLED
    return {"terminated": _ended(run, end, end.code if alone else 0)}


def _ended(run: Run, end: Exit, code: int) -> JSON:
    reason = end.reason if end.reason and code else "Completed" if code == 0 else "Error"
    times = {"startedAt": run.since or end.at, "finishedAt": end.at}
    return {"exitCode": code, "reason": reason, **times, **({"message": end.message} if end.message else {})}
