"""Waits for pods that an installation has started or ended."""

import time
from collections.abc import Callable

from tfyard.errors import TfyardError
from tfyard.install.settings import LABELS, NAME, Settings
from tfyard.kube import Kind, NotFound, requests
from tfyard.kube.requests import DEPLOYMENTS
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.model.callbacks import Say
from tfyard.model.names import LEASE_NAME
from tfyard.remote.installing.addresses import named
from tfyard.remote.reading.views import list_pods
from tfyard.views.objects import Lease
from tfyard.views.pods import PodDetails

LONGEST_STOP = 120.0
"""Longest wait for the operator's end, in seconds; the grace period of its pods is 30."""
LONGEST_ROLLOUT = 300.0
"""Longest wait for a rollout, in seconds; most of them are for an image that a node must pull first."""


def until_ready(client: SyncClient, settings: Settings, timeout: float, say: Say) -> None:
    """Waits until a leader reconciles jobs."""
    if left := _wait(lambda: _waits_for(client, settings), timeout, say):
        raise TfyardError(f"the operator is installed, but not ready after {timeout:g} s: {left}")


def until_pods_are_gone(client: SyncClient, namespace: str, say: Say) -> None:
    """Waits until the operator's pods are gone: no other operator may start before."""
    if left := _wait(lambda: _ends(_pods(client, namespace, LABELS)), LONGEST_STOP, say):
        raise TfyardError(f"the operator has not ended after {LONGEST_STOP:g} s: {left}")


def until_rolled_out(client: SyncClient, deployment: Manifest, say: Say) -> None:
    """Waits until the new pods of a Deployment are ready and the old ones have ended: a terminating pod works on
    for its grace period, and may still be connected with the API server."""
    name = named(deployment)

    def look() -> str:
        left = _rollout(client, deployment)
        return f"{name}: {left}" if left else ""

    if left := _wait(look, LONGEST_ROLLOUT, say):
        raise TfyardError(f"not rolled out after {LONGEST_ROLLOUT:g} s: {left}")


def _wait(look: Callable[[], str], timeout: float, say: Say) -> str:
    """Waits until `look` names nothing more, and says each change. Returns what is still waited for."""
    end, before = time.monotonic() + timeout, ""
    while (left := look()) and time.monotonic() < end:
        if left != before:
            say(f"waiting: {left}")
            before = left
        time.sleep(0.5)
    return left


def _rollout(client: SyncClient, deployment: Manifest) -> str:
    """What the rollout still waits for; empty: it is complete."""
    namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
    current = client.send(requests.get(DEPLOYMENTS.path(namespace, name)))
    pods = _pods(client, namespace, current["spec"]["selector"]["matchLabels"])
    replicas = current["spec"]["replicas"]
    if replicas and not _is_rolled_out(current):
        return _why_not_available([each for each in pods if not _is_ending(each)]) or "its pods to be ready"
    return _ends([each for each in pods if _is_ending(each) or not replicas])


def _ends(pods: list[PodDetails]) -> str:
    return f"pod {pods[0].name} to end" if pods else ""


def _is_ending(pod: PodDetails) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _pods(client: SyncClient, namespace: str, labels: dict[str, str]) -> list[PodDetails]:
    return list_pods(client, namespace, requests.selecting(labels))


def _waits_for(client: SyncClient, settings: Settings) -> str:
    """What the installation still waits for; empty: the operator is ready."""
    deployment = client.send(requests.get(DEPLOYMENTS.path(settings.namespace, NAME)))
    pods = [each for each in _pods(client, settings.namespace, LABELS) if not _is_ending(each)]
    if not _is_rolled_out(deployment):
        return _why_not_available(pods) or "its pods to be ready"
    try:
        lease = client.send(
            requests.get(requests.LEASES.path(settings.namespace, LEASE_NAME)), Kind(Lease).one
        )
    except NotFound:
        return "a leader to be elected"
    leader, _, _ = (lease.spec.holder_identity or "").rpartition("_")
    is_alive = leader in {each.name for each in pods}
    return "" if is_alive else "a leader to be elected"  # an operator that was killed still holds the lease


def _is_rolled_out(deployment: Manifest) -> bool:
    """Whether all pods are of the new template, and ready, as `kubectl rollout status` sees it."""
    status, replicas = deployment.get("status") or {}, deployment["spec"]["replicas"]
    is_seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return is_seen and counts == [replicas] * 3


def _why_not_available(pods: list[PodDetails]) -> str:
    for pod in pods:
        if pod.unscheduled:
            return f"{pod.name}: {pod.unscheduled.message}"
        for container in pod.status.container_statuses:
            state = container.state.waiting or container.state.terminated
            if state and state.reason:
                return f"{pod.name}: {state.reason} {state.message}".strip()
    return ""
