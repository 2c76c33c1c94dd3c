"""The table of the operator's permissions: the operator checks at its start that it has them, and roles.py turns
them into RBAC rules.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from tfyard.model.names import LEASE_NAME
from tfyard.model.permission import Permission

CHILDREN = (("", "pods"), ("", "services"), ("", "configmaps"), ("apps", "deployments"))
"""(group, resource) of the objects that the operator creates for a job."""
CHILD_VERBS = ("get", "list", "watch", "create", "delete")
PATCHED = ("pods", "services")
"""A patch ends pods whose sidecars do not end, releases pods that Kueue holds, and repairs Services that were
edited."""
EVENTS = Permission("", "events", ("create",))
LEASE = Permission("coordination.k8s.io", "leases", ("get", "create", "update"), name=LEASE_NAME)

POD_EVENTS = Permission("", "events", ("list",))
"""Optional: without it, the status of a job does not say that volumes of its pods cannot be mounted."""

POD_LOGS = Permission("", "pods", ("get",), "log")
"""Optional, and granted only if it is asked for: by it the operator sees whether jobs with `stall` make progress.
Whoever may read TFJobs sees the last line of one that stalls."""

NODES = Permission("", "nodes", ("get",))
"""Optional, and cluster-wide: without it, no pod is deleted by force, because the operator cannot know whether the
pod still runs."""


def of_jobs(group: str) -> list[Permission]:
    """Permissions on the TFJobs of one API group."""
    jobs = Permission(group, "tfjobs", ("list", "watch", "delete"))
    return [jobs, Permission(group, "tfjobs", ("update",), "status")]


def of_finalizers(group: str) -> Permission:
    """OpenShift requires it of clients that set an owner with blockOwnerDeletion. The roles grant it; the operator
    does not check for it."""
    return Permission(group, "tfjobs", ("update",), "finalizers")


def of_children() -> list[Permission]:
    return [
        Permission(group, resource, (*CHILD_VERBS, "patch") if resource in PATCHED else CHILD_VERBS)
        for group, resource in CHILDREN
    ]


def of_pod_groups(group: str, *, patch: bool) -> list[Permission]:
    """Permissions on the PodGroups of a gang scheduler. `patch`: their API allows changes, as for scaled jobs."""
    groups = Permission(group, "podgroups", CHILD_VERBS)
    return [groups, replace(groups, verbs=("patch",))] if patch else [groups]


def of_lease(namespace: str) -> Permission:
    return replace(LEASE, namespace=namespace)


def in_namespaces(permissions: Iterable[Permission], namespaces: Iterable[str]) -> list[Permission]:
    """The permissions in each of the namespaces; an empty list of namespaces means all of them."""
    table = list(permissions)
    return [replace(row, namespace=namespace) for namespace in namespaces or ("",) for row in table]
