"""The operator of a box: TFJobs of every version, and the operator with exactly the permissions that it needs."""

import sys
from typing import Any

from tfyard.backends.kubernetes import OLD_TFJOBS, TFJOBS
from tfyard.controller import crds
from tfyard.formats.crd import crds as definitions
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.install import permissions
from tfyard.install.permissions import Permission
from tfyard.kube import Client, Resource, requests
from tfyard.model.names import BOX_OPERATOR

USER = BOX_OPERATOR
_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", namespaced=False)


async def install(client: Client) -> None:
    """All versions: here people try what they have, and a small cluster can afford it."""
    for definition in definitions(VERSIONS):
        await client.send(requests.apply(requests.CRDS.path(name=definition["metadata"]["name"]), definition))
    await crds.ready(client, install=True, wait=crds.PUBLICATION_TIMEOUT)
    for resource, document in zip((_ROLES, _BINDINGS), role_and_binding(), strict=True):
        await client.send(requests.apply(resource.path(name=USER), document))


def role_and_binding() -> tuple[dict[str, Any], dict[str, Any]]:
    """Pure: cluster-wide, from the table of permissions."""
    needed = [each for resource in (TFJOBS, OLD_TFJOBS) for each in permissions.of_jobs(resource.group)]
    needed += [*permissions.of_children(), permissions.EVENTS, permissions.NODES]
    api, metadata = "rbac.authorization.k8s.io", {"name": USER}
    role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": metadata}
    reference = {"apiGroup": api, "kind": "ClusterRole", "name": USER}
    subject = {"apiGroup": api, "kind": "User", "name": USER}
    binding = {"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": metadata}
    return (
        {**role, "rules": [_rule(each) for each in needed]},
        {**binding, "roleRef": reference, "subjects": [subject]},
    )


def _rule(permission: Permission) -> dict[str, Any]:
    resource = "/".join(filter(None, (permission.resource, permission.subresource)))
    return {"apiGroups": [permission.group], "resources": [resource], "verbs": list(permission.verbs)}


def command_line(kubeconfig: str, bind: str, config: str) -> list[str]:
    """There is one, so no leader election: a restarted operator goes on at once."""
    return [
        *(sys.executable, "-m", "tfyard", "operator"),
        *("--kubeconfig", kubeconfig, "--bind", bind, "--no-leader-elect", "--log", "text"),
        *(["--config", config] if config else []),
    ]
