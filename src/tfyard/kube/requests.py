"""Requests to an apiserver, as values. Pure: nothing here touches the network, so tests compare whole values."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from tfyard.kube.errors import Transient, Unreachable
from tfyard.model.permission import RBAC

FIELD_MANAGER = "tfyard"

Query = Mapping[str, str]


class Resource(msgspec.Struct, frozen=True):
    """A kind of object by its name in the API's paths; `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path of the collection or of one object. Without a namespace, a collection spans all of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        middle = f"/namespaces/{quote(namespace, '')}" if namespace and self.namespaced else ""
        tail = "".join(f"/{quote(part, '')}" for part in (name, subresource) if part)
        return f"{root}{middle}/{self.plural}{tail}"


PODS = Resource("", "v1", "pods")
SERVICES = Resource("", "v1", "services")
CONFIG_MAPS = Resource("", "v1", "configmaps")
EVENTS = Resource("", "v1", "events")
"""Events of the core group, as upstream's: its SDK finds events by their involvedObject."""
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts")
NODES = Resource("", "v1", "nodes", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
SECRETS = Resource("", "v1", "secrets")
CLAIMS = Resource("", "v1", "persistentvolumeclaims")
QUOTAS = Resource("", "v1", "resourcequotas")
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices")
DEPLOYMENTS = Resource("apps", "v1", "deployments")
LEASES = Resource("coordination.k8s.io", "v1", "leases")
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
TFJOBS = Resource("kubeflow.org", "v1", "tfjobs")
OLD_TFJOBS = Resource("tensorflow.org", "v1alpha1", "tfjobs")
BOTH_TFJOBS = (TFJOBS, OLD_TFJOBS)
WORKLOADS = Resource("kueue.x-k8s.io", "v1beta1", "workloads")
"""Workloads of Kueue: one for each job that it queues."""
QUEUE_VISIBILITY = Resource("visibility.kueue.x-k8s.io", "v1beta1", "localqueues")
"""Kueue's own API server, which tells what waits in a queue, in its order."""


class Patch(StrEnum):
    """The kinds of patch. Custom resources do not support STRATEGIC; lists of built-in kinds need it to merge."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"


def get(path: str, query: Query | None = None) -> Request:
    """Reads one object, a collection, a log, or any other path such as `/version`."""
    return Request("GET", _with(path, query))


def create(path: str, body: Any, query: Query | None = None) -> Request:
    """Creates an object in a collection; also bindings, evictions and tokens, by POSTs to a subresource."""
    return Request("POST", _with(path, query), msgspec.json.encode(body))


def replace(path: str, body: Any) -> Request:
    """Replaces the whole object; a resourceVersion in it must still be the stored one (else Conflict)."""
    return Request("PUT", path, msgspec.json.encode(body))


def patch(path: str, body: Any, kind: Patch = Patch.MERGE, query: Query | None = None) -> Request:
    return Request("PATCH", _with(path, query), msgspec.json.encode(body), kind)


def apply(path: str, body: Any) -> Request:
    """Server-side apply: creates or updates, and owns the fields of `body`. JSON is YAML, so we send JSON."""
    return patch(path, body, Patch.APPLY, {"fieldManager": FIELD_MANAGER, "force": "true"})


def delete(path: str, uid: str = "", grace: int | None = None, propagation: str = "") -> Request:
    """Deletes an object. With `uid`, only that one: the server answers Conflict for a new one of the same name."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation:
        options["propagationPolicy"] = propagation
    return Request("DELETE", path, msgspec.json.encode(options))


def dry_run(request: Request) -> Request:
    """The same write as a dry run. For a DELETE with options, the server reads `dryRun` only from those."""
    if request.method == "DELETE":
        options = msgspec.json.decode(request.body or b"{}")
        return msgspec.structs.replace(request, body=msgspec.json.encode({**options, "dryRun": ["All"]}))
    sign = "&" if "?" in request.path else "?"
    return msgspec.structs.replace(request, path=f"{request.path}{sign}dryRun=All")


def may_repeat(request: Request, problem: Transient) -> bool:
    """Whether a retry is safe: reads always, writes only if they were never sent or rejected with Retry-After."""
    if request.method == "GET" or problem.retry_after is not None:
        return True
    return isinstance(problem, Unreachable) and not problem.sent


def selecting(labels: Query | None = None, fields: Query | None = None) -> dict[str, str]:
    """The query of a list or watch with these labels and fields. An empty selector is left out."""
    chosen = {"labelSelector": labels, "fieldSelector": fields}
    return {name: ",".join(f"{k}={v}" for k, v in part.items()) for name, part in chosen.items() if part}


def _with(path: str, query: Query | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path
