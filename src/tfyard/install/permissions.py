"""The permissions that the operator needs, as one table: the operator asks the server for them, and roles.py
writes RBAC's rules from them.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model.names import LEASE_NAME


class Permission(Struct, frozen=True, order=True):
    """Verbs on a resource (or a subresource of it) in a namespace; without a namespace, in all of them."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    subresource: str = ""
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        what = ".".join(filter(None, (self.resource, self.group)))
        what = f"{what}/{self.subresource}" if self.subresource else what
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        return f"{', '.join(self.verbs)} {what} in {where}"


CHILDREN = (("", "pods"), ("", "services"), ("", "configmaps"), ("apps", "deployments"))
"""(group, resource) of what the operator creates for a job."""
CHILD_VERBS = ("get", "list", "watch", "create", "delete")
POD_VERBS = (*CHILD_VERBS, "patch")
"""Pods whose sidecars do not end are ended by a patch, and those that Kueue holds are released by one."""
EVENTS = Permission("", "events", ("create",))
LEASE = Permission("coordination.k8s.io", "leases", ("get", "create", "update"), name=LEASE_NAME)

POD_EVENTS = Permission("", "events", ("list",))
"""Optional: without it, a job does not say that the volumes of its pods cannot be mounted."""

NODES = Permission("", "nodes", ("get",))
"""Optional, and cluster-wide: without it no pod is ever deleted by force, because nobody can tell whether it still
runs."""

ADOPTED_SERVICES = Permission("", "services", ("patch",))
"""Only with `--compat kubeflow`: Services that nobody owns get an owner reference."""


def of_jobs(group: str) -> list[Permission]:
    """On the TFJobs of one API group."""
    jobs = Permission(group, "tfjobs", ("list", "watch", "delete"))
    return [jobs, Permission(group, "tfjobs", ("update",), "status")]


def of_finalizers(group: str) -> Permission:
    """Granted, never asked for: OpenShift wants it of whoever sets an owner that blocks deletion."""
    return Permission(group, "tfjobs", ("update",), "finalizers")


def of_children() -> list[Permission]:
    return [
        Permission(group, resource, POD_VERBS if resource == "pods" else CHILD_VERBS)
        for group, resource in CHILDREN
    ]


def of_pod_groups(group: str, *, patch: bool) -> list[Permission]:
    """On the PodGroups of a gang scheduler; those of a scaled job are patched, where they can change at all."""
    groups = Permission(group, "podgroups", CHILD_VERBS)
    return [groups, replace(groups, verbs=("patch",))] if patch else [groups]


def of_lease(namespace: str) -> Permission:
    return replace(LEASE, namespace=namespace)


def in_namespaces(permissions: Iterable[Permission], namespaces: Iterable[str]) -> list[Permission]:
    """The same permissions in each namespace; no namespace at all means all of them."""
    each = list(permissions)
    return [replace(one, namespace=namespace) for namespace in namespaces or ("",) for one in each]
