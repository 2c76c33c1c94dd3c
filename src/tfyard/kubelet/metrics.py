"""The metrics API of a node, in place of a metrics-server: what `kubectl top` and `tfyard top` show.

The apiserver passes requests for the group on to a Service. Here that is the kubelet's own server, by its address:
a Service of the type ExternalName needs no endpoints, which could not be on loopback, and no cluster network. The
apiserver has checked the user's permissions before.
"""

import base64
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Protocol

from aiohttp import web

from tfyard.kube import Client, NotFound, Resource, requests
from tfyard.kube.times import timestamp
from tfyard.model import Manifest
from tfyard.model.permission import RBAC
from tfyard.node.engine import ContainerProcess
from tfyard.node.memory import MachineMeter, RecentUse, Use

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
API = f"{GROUP}/{VERSION}"
NAMESPACE, SERVICE = "kube-system", "node-metrics"
HOST = f"{SERVICE}.{NAMESPACE}.svc"
"""The name that the certificate must have, whatever the address is."""
KINDS = {"nodes": "NodeMetrics", "pods": "PodMetrics"}
SELECTORS = ("labelSelector", "fieldSelector")
WINDOW = 15.0
"""Seconds over which the use of CPU is averaged: the period of a metrics-server."""
MACHINE = ""
"""Id of the whole machine among the uses."""
READER = "system:aggregated-metrics-reader"
_API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", namespaced=False)


class RecentUses:
    """Use of processes and of the machine in the last seconds."""

    def __init__(self) -> None:
        self._recent, self._machine = RecentUse(WINDOW), MachineMeter()

    def add(self, uses: dict[str, Use]) -> None:
        self._recent.add({**uses, MACHINE: self._machine.measure()}, time.monotonic())

    def of_machine(self) -> tuple[Use, float] | None:
        return self._recent.of(MACHINE)

    def of(self, process: ContainerProcess) -> tuple[Use, float] | None:
        """Use of a container with all that was started inside it, and of how many seconds; None: unknown."""
        own = self._recent.of(process.id)
        if own is None:
            return None
        others = [recent for each in process.beside if (recent := self._recent.of(each.id))]
        return reduce(Use.plus, (use for use, _ in others), own[0]), own[1]


class MeteredRuntime(Protocol):
    """The runtime of the node."""

    uses: RecentUses

    def processes(self, uid: str) -> dict[str, ContainerProcess]:
        """Processes of the running containers of a pod, by name."""


class MetricsApi:
    def __init__(self, client: Client, runtime: MeteredRuntime, node: str) -> None:
        self._client, self._runtime, self._node = client, runtime, node

    def routes(self) -> list[web.RouteDef]:
        """Routes for the kubelet's server."""
        root = f"/apis/{API}"
        return [
            web.get(root, self._resources),
            web.get(f"{root}/nodes", self._list_nodes),
            web.get(f"{root}/nodes/{{name}}", self._get_node),
            web.get(f"{root}/pods", self._list_pods),
            web.get(f"{root}/namespaces/{{namespace}}/pods", self._list_pods),
            web.get(f"{root}/namespaces/{{namespace}}/pods/{{name}}", self._get_pod),
        ]

    async def register(self, address: str, port: int, authority: bytes) -> None:
        """Register the address that serves the group with the apiserver."""
        for path, document in registration(address, port, authority).items():
            await self._client.send(requests.apply(path, document))

    async def _resources(self, _: web.Request) -> web.Response:
        verbs = ["get", "list"]
        resources = [
            {"name": name, "singularName": "", "namespaced": name == "pods", "kind": kind, "verbs": verbs}
            for name, kind in KINDS.items()
        ]
        about = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API}
        return web.json_response({**about, "resources": resources})

    async def _list_nodes(self, request: web.Request) -> web.Response:
        return _list("nodes", await self._nodes(_selectors(request)))

    async def _get_node(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return _one("nodes", name, await self._nodes({"fieldSelector": f"metadata.name={name}"}))

    async def _list_pods(self, request: web.Request) -> web.Response:
        namespace = request.match_info.get("namespace", "")
        return _list("pods", await self._pods(namespace, _selectors(request)))

    async def _get_pod(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        pods = await self._pods(namespace, {"fieldSelector": f"metadata.name={name}"})
        return _one("pods", f"{namespace}/{name}", pods)

    async def _nodes(self, query: dict[str, str]) -> list[Manifest]:
        listed: Any = await self._client.send(requests.get(requests.NODES.path(), query))
        own = [node for node in listed["items"] if node["metadata"]["name"] == self._node]
        used = self._runtime.uses.of_machine()
        return [{**_head("nodes", each, used[1]), "usage": usage(used[0])} for each in own if used]

    async def _pods(self, namespace: str, query: dict[str, str]) -> list[Manifest]:
        """Metrics of the pods that the apiserver selects: it knows what selectors mean."""
        try:
            listed: Any = await self._client.send(requests.get(requests.PODS.path(namespace), query))
        except NotFound:
            return []
        measured = [(each, self._containers(each["metadata"]["uid"])) for each in listed["items"]]
        return [pod_metrics(each, containers) for each, containers in measured if containers]

    def _containers(self, uid: str) -> dict[str, tuple[Use, float]]:
        uses = {name: self._runtime.uses.of(each) for name, each in self._runtime.processes(uid).items()}
        return {name: used for name, used in uses.items() if used}


def pod_metrics(pod: Manifest, containers: Mapping[str, tuple[Use, float]]) -> Manifest:
    """PodMetrics of a pod, with the window of the container that was measured for the longest time. Pure."""
    window = max(seconds for _, seconds in containers.values())
    each = [{"name": name, "usage": usage(use)} for name, (use, _) in containers.items()]
    return {**_head("pods", pod, window), "containers": each}


def usage(use: Use) -> dict[str, str]:
    """Use in the units of a metrics-server. Pure."""
    return {"cpu": f"{round(use.cpus * 1e9)}n", "memory": f"{use.memory >> 10}Ki"}


def registration(address: str, port: int, authority: bytes) -> dict[str, Manifest]:
    """Objects to apply, by their paths. Users that may view a namespace may view the use of its pods. Pure."""
    view = {f"{RBAC}/aggregate-to-{role}": "true" for role in ("view", "edit", "admin")}
    rule = {"apiGroups": [GROUP], "resources": [*KINDS], "verbs": ["get", "list"]}
    name = f"{VERSION}.{GROUP}"
    api = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": NAMESPACE, "name": SERVICE, "port": port},
        "caBundle": base64.b64encode(authority).decode(),
    }
    return {
        requests.SERVICES.path(NAMESPACE, SERVICE): {
            **_object("v1", "Service", SERVICE),
            "spec": {"type": "ExternalName", "externalName": address},
        },
        _API_SERVICES.path(name=name): {
            **_object("apiregistration.k8s.io/v1", "APIService", name),
            "spec": api,
        },
        requests.CLUSTER_ROLES.path(name=READER): {
            **_object(f"{RBAC}/v1", "ClusterRole", READER, view),
            "rules": [rule],
        },
    }


def _object(version: str, kind: str, name: str, labels: Mapping[str, str] | None = None) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": dict(labels or {})}}


def _head(plural: str, of: Manifest, window: float) -> Manifest:
    kept = {key: of["metadata"][key] for key in ("name", "namespace", "labels") if of["metadata"].get(key)}
    now = timestamp(datetime.now(UTC))
    metadata = {**kept, "creationTimestamp": now}
    about = {"kind": KINDS[plural], "apiVersion": API, "metadata": metadata}
    return {**about, "timestamp": now, "window": f"{window:.3f}s"}


def _selectors(request: web.Request) -> dict[str, str]:
    return {key: request.query[key] for key in SELECTORS if request.query.get(key)}


def _list(plural: str, items: Iterable[Manifest]) -> web.Response:
    about = {"kind": f"{KINDS[plural]}List", "apiVersion": API, "metadata": {}}
    return web.json_response({**about, "items": list(items)})


def _one(plural: str, name: str, items: list[Manifest]) -> web.Response:
    if items:
        return web.json_response(items[0])
    missing = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "NotFound",
        "message": f'{KINDS[plural].lower()}.{GROUP} "{name}" not found',
        "code": 404,
    }
    return web.json_response(missing, status=404)
