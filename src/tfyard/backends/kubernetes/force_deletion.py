"""Whether a pod whose kubelet does not finish its deletion may be deleted by force: if it surely runs no more.

A pod that is deleted by force may run on where nobody sees it, and its replacement would then write to the same
checkpoints. A node that does not answer is no proof: the network between may be all that is lost.
"""

from typing import TypeVar

from msgspec import Struct

from tfyard.kube import Client, Forbidden, Kind, NotFound, requests
from tfyard.model import Delete, Obstacle

from .views import Meta, PodCondition, PodView

T = TypeVar("T", "PodView", "NodeView")

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint by which an administrator says that a machine is off."""


class Taint(Struct, frozen=True, gc=False):
    key: str = ""


class NodeSpec(Struct, frozen=True):
    taints: tuple[Taint, ...] = ()


class NodeStatus(Struct, frozen=True):
    conditions: tuple[PodCondition, ...] = ()


class NodeView(Struct, frozen=True):
    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


PODS, NODES = Kind(PodView), Kind(NodeView)


async def obstacle(client: Client, namespace: str, action: Delete) -> Obstacle | None:
    """Why this pod must not be deleted by force yet; None if it may be, or is gone."""
    pod = await _get(client, requests.PODS.path(namespace, action.name), PODS)
    if pod is None or pod.metadata.uid != action.uid:
        return None
    try:
        reason = await _reason(client, pod)
    except Forbidden:
        node = pod.spec.node_name
        reason = f"whether it still runs on {node} is not known, because the operator may not get nodes"
    return (
        Obstacle("PodTerminating", f"pod {action.name} is still being deleted: {reason}") if reason else None
    )


async def _reason(client: Client, pod: PodView) -> str:
    if pod.metadata.finalizers:
        return f"it has the finalizer {pod.metadata.finalizers[0]}"
    name = pod.spec.node_name
    return why_not(pod, await _get(client, requests.NODES.path(name=name), NODES)) if name else ""


def why_not(pod: PodView, node: NodeView | None) -> str:
    """Empty: nothing of the pod runs any more. A node that is None is gone."""
    if node is None or any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints):
        return ""
    name = node.metadata.name
    if not any(each.type == "Ready" and each.status == "True" for each in node.status.conditions):
        return (
            f"node {name} is not ready; if the machine is off, delete the Node or taint it {OUT_OF_SERVICE}"
        )
    if not _has_ended(pod):
        return f"node {name} is ready, and has not reported the end of all its containers"
    return ""


def _has_ended(pod: PodView) -> bool:
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return bool(pod.status.container_statuses) and all(each.state.terminated for each in statuses)


async def _get(client: Client, path: str, kind: Kind[T]) -> T | None:
    try:
        return await client.send(requests.get(path), kind.one)
    except NotFound:
        return None
