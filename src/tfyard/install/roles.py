"""RBAC roles for the operator, generated from the table of permissions, and for the people who train."""

from collections.abc import Iterable, Mapping

from tfyard.model import Manifest
from tfyard.model.permission import RBAC, Permission
from tfyard.planner.gang import API_VERSIONS

from . import permissions
from .settings import LABELS, NAME, Settings

GROUPS = ("kubeflow.org", "tensorflow.org")

OPERATOR_RULES = (
    *(each for group in GROUPS for each in permissions.of_jobs(group)),
    *(permissions.of_finalizers(group) for group in GROUPS),
    *permissions.of_children(),
    permissions.EVENTS,
    permissions.POD_EVENTS,
)
GANG_SCHEDULERS: dict[str, list[Permission]] = {
    name: permissions.of_pod_groups(version.partition("/")[0], patch=name != "core")
    for name, version in API_VERSIONS.items()
}
"""Value of `--gang-scheduler` -> the permissions that it needs; `auto` may choose any of the others."""
GANG_SCHEDULERS["auto"] = [each for needed in GANG_SCHEDULERS.values() for each in needed]

VIEW, EDIT = "tfyard-view", "tfyard-edit"
READ = ("get", "list", "watch")
CHANGE = ("create", "delete", "deletecollection", "patch", "update")
OPEN = ("create", "get")
"""Verbs for exec and port-forward: a GET opens a WebSocket, but since Kubernetes 1.35 it needs `create`."""
VIEW_RULES = (
    *(Permission(group, "tfjobs", READ) for group in GROUPS),
    *(Permission(group, "tfjobs", ("get",), "status") for group in GROUPS),
    *(
        Permission("", resource, READ)
        for resource in ("configmaps", "events", "persistentvolumeclaims", "pods")
    ),
    permissions.POD_LOGS,
)
EDIT_RULES = (
    *VIEW_RULES,
    *(Permission(group, "tfjobs", CHANGE) for group in GROUPS),
    *(Permission(group, "tfjobs", ("get", "patch", "update"), "scale") for group in GROUPS),
    *(
        Permission("", resource, ("create", "delete", "patch"))
        for resource in ("configmaps", "persistentvolumeclaims", "pods")
    ),
    *(Permission("", "pods", OPEN, subresource) for subresource in ("exec", "portforward")),
    Permission("", "serviceaccounts", ("create", "get")),
    Permission("batch", "jobs", ("create", "delete", "get", "list")),
)
"""Permissions for submitting, reading logs, copying results and port-forwarding; none on Secrets. A Job drives a
sweep, under a ServiceAccount of its own."""
SWEEP_ROLE = "tfyard-sweep"
DRIVER_IMAGE = "tfyard.dev/driver-image"
"""Annotation of this role: the image of the pods that drive sweeps."""
SWEEP_RULES = (
    Permission("kubeflow.org", "tfjobs", ("create", "get", "list", "patch")),
    Permission("", "configmaps", ("get", "patch")),
    Permission("", "pods", ("list",)),
    permissions.POD_LOGS,
    Permission("kueue.x-k8s.io", "workloads", ("list", "patch")),
)
"""Permissions of what drives a sweep: its trials, its state, the metrics in their logs. A trial that Kueue has
admitted is stopped by its Workload."""
SWEEP_READER = "tfyard-sweep-reader"
SWEEP_READER_RULES = (Permission(RBAC, "clusterroles", ("get",), name=SWEEP_ROLE),)
"""Everybody may read which image that is."""


def operator_roles(settings: Settings) -> list[Manifest]:
    """One ClusterRole, or one Role per namespace, and a Role for the lease in the operator's namespace."""
    allowed = rules(OPERATOR_RULES)
    if settings.read_logs:
        allowed += rules([permissions.POD_LOGS])
    if settings.is_cluster_wide:
        allowed += rules([permissions.NODES])
        roles = [*_role("ClusterRole", NAME, "", allowed, settings.namespace)]
    else:
        roles = [
            each
            for namespace in settings.namespaces
            for each in _role("Role", NAME, namespace, allowed, settings.namespace)
        ]
    lease = rules([permissions.of_lease(settings.namespace)])
    return [*roles, *_role("Role", f"{NAME}-lease", settings.namespace, lease, settings.namespace)]


def people_roles() -> list[Manifest]:
    """Roles aggregated into the built-in ones: who may view or edit a namespace may do so with its TFJobs."""
    return [
        _cluster_role(VIEW, rules(VIEW_RULES), _aggregated("view")),
        _cluster_role(EDIT, rules(EDIT_RULES), _aggregated("edit", "admin")),
    ]


def sweep_roles(settings: Settings) -> list[Manifest]:
    """The role of what drives sweeps; administrators bind it, namespace by namespace. Its annotation names the
    image, which all users of a cluster-wide installation may read."""
    driver = _cluster_role(SWEEP_ROLE, rules(SWEEP_RULES), {})
    driver["metadata"]["annotations"] = {DRIVER_IMAGE: settings.image}
    if not settings.is_cluster_wide:
        return [driver]
    reader = _cluster_role(SWEEP_READER, rules(SWEEP_READER_RULES), {})
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": reader["metadata"],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": SWEEP_READER},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:authenticated"}],
    }
    return [driver, reader, binding]


def rules(needed: Iterable[Permission]) -> list[Manifest]:
    """RBAC rules: verbs of the same resource together, resources with the same verbs together."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for permission in needed:
        resource = f"{permission.resource}/{permission.subresource}".rstrip("/")
        for verb in permission.verbs:
            name = (
                "" if verb == "create" else permission.name
            )  # an object that does not exist yet has no name
            verbs.setdefault((permission.group, resource, name), set()).add(verb)
    alike: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, resource, name), allowed in sorted(verbs.items()):
        alike.setdefault((group, name, tuple(sorted(allowed))), []).append(resource)
    return [_rule(group, resources, name, allowed) for (group, name, allowed), resources in alike.items()]


def _rule(group: str, resources: list[str], name: str, verbs: tuple[str, ...]) -> Manifest:
    names = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [group], "resources": resources, **names, "verbs": list(verbs)}


def _role(
    kind: str, name: str, namespace: str, allowed: list[Manifest], home: str
) -> tuple[Manifest, Manifest]:
    """The role, and its binding to the operator's ServiceAccount in the namespace `home`."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": LABELS}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": home}],
    }
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": allowed}, binding


def _cluster_role(name: str, allowed: list[Manifest], labels: Mapping[str, str]) -> Manifest:
    metadata = {"name": name, "labels": {**LABELS, **labels}}
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": allowed}


def _aggregated(*roles: str) -> dict[str, str]:
    return {f"{RBAC}/aggregate-to-{role}": "true" for role in roles}
