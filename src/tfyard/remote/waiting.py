"""Waiting for what an installation has started or ended."""

import time
from collections.abc import Callable

from tfyard.errors import TfyardError
from tfyard.install.settings import LABELS, NAME, Settings
from tfyard.kube import NotFound, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.model.names import LEASE_NAME

from .addresses import DEPLOYMENTS

LONGEST_STOP = 120.0
"""Seconds; the grace period of its pods is 30."""

Say = Callable[[str], None]


def until_ready(client: SyncClient, settings: Settings, timeout: float, say: Say) -> None:
    """Until a leader reconciles jobs. Says what it waits for, once per change."""
    end, said = time.monotonic() + timeout, ""
    while (waiting := _waits_for(client, settings)) and time.monotonic() < end:
        if waiting != said:
            say(f"waiting: {waiting}")
            said = waiting
        time.sleep(0.5)
    if waiting:
        raise TfyardError(f"the operator is installed, but not ready after {timeout:g} s: {waiting}")


def until_pods_are_gone(client: SyncClient, namespace: str, say: Say) -> None:
    """No other operator may start before ours has ended."""
    end, said = time.monotonic() + LONGEST_STOP, False
    while pods := _pods(client, namespace):
        if time.monotonic() > end:
            raise TfyardError(f"pod {pods[0]['metadata']['name']} has not ended after {LONGEST_STOP:g} s")
        if not said:
            say("waiting: the operator's pods to end")
            said = True
        time.sleep(0.5)


def _pods(client: SyncClient, namespace: str) -> list[Manifest]:
    found = client.send(requests.get(requests.PODS.path(namespace), requests.selecting(LABELS)))
    return list(found["items"])


def _waits_for(client: SyncClient, settings: Settings) -> str:
    """Empty: it is ready."""
    deployment = client.send(requests.get(DEPLOYMENTS.path(settings.namespace, NAME)))
    pods = [each for each in _pods(client, settings.namespace) if "deletionTimestamp" not in each["metadata"]]
    if not _is_rolled_out(deployment):
        return _why_not_available(pods) or "its pods to be ready"
    try:
        lease = client.send(requests.get(requests.LEASES.path(settings.namespace, LEASE_NAME)))
    except NotFound:
        return "a leader to be elected"
    leader, _, _ = (lease["spec"].get("holderIdentity") or "").rpartition("_")
    is_alive = leader in {each["metadata"]["name"] for each in pods}
    return "" if is_alive else "a leader to be elected"  # an operator that was killed still holds the lease


def _is_rolled_out(deployment: Manifest) -> bool:
    """As `kubectl rollout status` sees it: all pods are of the new template, and ready."""
    status, wanted = deployment.get("status") or {}, deployment["spec"]["replicas"]
    is_seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return is_seen and counts == [wanted] * 3


def _why_not_available(pods: list[Manifest]) -> str:
    for pod in pods:
        for condition in pod.get("status", {}).get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return f"{pod['metadata']['name']}: {condition.get('message', '')}"
        for container in pod.get("status", {}).get("containerStatuses") or []:
            state = container["state"].get("waiting") or container["state"].get("terminated") or {}
            if state.get("reason"):
                return f"{pod['metadata']['name']}: {state['reason']} {state.get('message', '')}".strip()
    return ""
