"""Addresses of objects on the server, by kind."""

from tfyard.kube import Resource, requests
from tfyard.model import Manifest
from tfyard.model.permission import RBAC

WEBHOOKS = Resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", namespaced=False)
KINDS = {
    "Namespace": requests.NAMESPACES,
    "CustomResourceDefinition": requests.CRDS,
    "ServiceAccount": requests.SERVICE_ACCOUNTS,
    "ConfigMap": requests.CONFIG_MAPS,
    "Service": requests.SERVICES,
    "Deployment": requests.DEPLOYMENTS,
    "PodDisruptionBudget": Resource("policy", "v1", "poddisruptionbudgets"),
    "Role": Resource(RBAC, "v1", "roles"),
    "RoleBinding": Resource(RBAC, "v1", "rolebindings"),
    "ClusterRole": requests.CLUSTER_ROLES,
    "ClusterRoleBinding": requests.CLUSTER_ROLE_BINDINGS,
}
"""Kinds of objects that are installed, in the order in which they are created."""


def path_of(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return KINDS[manifest["kind"]].path(metadata.get("namespace", ""), metadata["name"])


def title(manifest: Manifest) -> str:
    """The name of an object in kubectl's form: deployment.apps/tf-job-operator."""
    group = KINDS[manifest["kind"]].group
    return f"{manifest['kind'].lower()}{f'.{group}' if group else ''}/{manifest['metadata']['name']}"


def named(deployment: Manifest) -> str:
    """A Deployment in a sentence."""
    metadata = deployment["metadata"]
    return f"deployment {metadata['name']} in the namespace {metadata['namespace']}"


def helm_release(manifest: Manifest) -> str:
    """The Helm release that an object belongs to; empty: none."""
    return str((manifest["metadata"].get("annotations") or {}).get("meta.helm.sh/release-name") or "")
