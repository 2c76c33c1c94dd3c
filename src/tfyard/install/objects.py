"""Everything that is installed, in the order in which it must be applied."""

from tfyard.formats.crd import crds
from tfyard.model import Manifest

from . import operator, roles
from .settings import Settings


def objects(settings: Settings) -> list[Manifest]:
    """Without the namespace: whoever installs decides whether it is created."""
    return [
        *crds(settings.versions),
        operator.service_account(settings),
        *roles.operator_roles(settings),
        *roles.people_roles(),
        *([operator.config(settings)] if settings.cloud else []),
        operator.metrics_service(settings),
        *([operator.disruption_budget(settings)] if settings.replicas > 1 else []),
        operator.deployment(settings),
    ]


def namespace(settings: Settings) -> Manifest:
    """Its pods pass the strictest of Kubernetes' own checks, so the namespace asks for it."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": settings.namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
