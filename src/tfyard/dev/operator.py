"""The operator of a box: TFJobs of every version, and the operator with exactly the permissions that it needs."""

import sys

from tfyard.controller import crds
from tfyard.formats.crd.documents import crds as definitions
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.install import permissions
from tfyard.install.roles import OPERATOR_RULES, RBAC, rules
from tfyard.kube import Client, Resource, requests
from tfyard.model import Manifest
from tfyard.model.names import BOX_OPERATOR

USER = BOX_OPERATOR
_ROLES = Resource(RBAC, "v1", "clusterroles", namespaced=False)
_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", namespaced=False)


async def install(client: Client) -> None:
    """All versions: here people try what they have, and a small cluster can afford it."""
    for definition in definitions(VERSIONS):
        await client.send(requests.apply(requests.CRDS.path(name=definition["metadata"]["name"]), definition))
    await crds.ready(client, install=True, wait=crds.PUBLICATION_TIMEOUT)
    for resource, document in zip((_ROLES, _BINDINGS), role_and_binding(), strict=True):
        await client.send(requests.apply(resource.path(name=USER), document))


def role_and_binding() -> tuple[Manifest, Manifest]:
    """Pure: the rules that an installation grants, to the user that the operator of a box is."""
    api, metadata = f"{RBAC}/v1", {"name": USER}
    allowed = rules([*OPERATOR_RULES, permissions.NODES])
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": USER}
    subject = {"apiGroup": RBAC, "kind": "User", "name": USER}
    return (
        {"apiVersion": api, "kind": "ClusterRole", "metadata": metadata, "rules": allowed},
        {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": reference}
        | {"subjects": [subject]},
    )


def command_line(kubeconfig: str, bind: str, config: str) -> list[str]:
    """There is one, so no leader election: a restarted operator goes on at once."""
    return [
        *(sys.executable, "-m", "tfyard", "operator"),
        *("--kubeconfig", kubeconfig, "--bind", bind, "--no-leader-elect", "--log", "text"),
        *(["--config", config] if config else []),
    ]
