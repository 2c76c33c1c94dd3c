"""All objects of an installation: the CRDs, the roles, and the operator's own objects."""

import hashlib
from typing import Any, Final

from tfyard.formats.crd.documents import crds
from tfyard.model import Manifest, restricted
from tfyard.model.names import CONFIG_HASH, OPERATOR_PORT

from . import roles
from .clouds import CONFIGS
from .settings import CONFIG_KEY, CONFIG_NAME, LABELS, NAME, Settings

CONFIG_FOLDER: Final = "/etc/config"
TOKEN_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS: Final = 3607
RESOURCES: Final = {
    "limits": {"cpu": "1", "memory": "512Mi"},
    "requests": {"cpu": "100m", "memory": "128Mi"},
}


def objects(settings: Settings) -> list[Manifest]:
    """The objects in the order in which they must be applied, without the namespace: the caller decides whether to
    create it."""
    return [
        *crds(settings.served),
        _service_account(settings),
        *roles.operator_roles(settings),
        *roles.people_roles(),
        *roles.sweep_roles(settings),
        *([_config(settings)] if settings.cloud else []),
        _metrics_service(settings),
        *([_disruption_budget(settings)] if settings.replicas > 1 else []),
        _deployment(settings),
    ]


def namespace(settings: Settings) -> Manifest:
    """The operator's pods meet the Pod Security Standard `restricted`, so the namespace enforces it."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": settings.namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _service_account(settings: Settings) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(NAME, settings),
        "automountServiceAccountToken": False,
    }


def _config(settings: Settings) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(CONFIG_NAME, settings),
        "data": {CONFIG_KEY: CONFIGS[settings.cloud]},
    }


def _metrics_service(settings: Settings) -> Manifest:
    port = {"name": "metrics", "port": OPERATOR_PORT, "targetPort": "metrics"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(f"{NAME}-metrics", settings),
        "spec": {"selector": LABELS, "ports": [port]},
    }


def _disruption_budget(settings: Settings) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(NAME, settings),
        "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}},
    }


def _deployment(settings: Settings) -> Manifest:
    spec = {
        "replicas": settings.replicas,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": _pod_metadata(settings), "spec": _pod(settings)},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(NAME, settings),
        "spec": spec,
    }


def _metadata(name: str, settings: Settings) -> Manifest:
    return {"name": name, "namespace": settings.namespace, "labels": LABELS}


def _pod_metadata(settings: Settings) -> Manifest:
    metadata: Manifest = {"labels": {**LABELS, "name": NAME}}
    if settings.cloud:  # a changed config starts new pods
        digest = hashlib.sha256(CONFIGS[settings.cloud].encode()).hexdigest()
        metadata["annotations"] = {CONFIG_HASH: digest}
    return metadata


def _pod(settings: Settings) -> Manifest:
    pod: Manifest = {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "securityContext": restricted.POD,
        "containers": [_container(settings)],
        "volumes": _volumes(settings),
    }
    return {**pod, "topologySpreadConstraints": [_spread()]} if settings.replicas > 1 else pod


def _container(settings: Settings) -> Manifest:
    config = [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}] if settings.cloud else []
    return {
        "name": NAME,
        "image": settings.image,
        "args": _arguments(settings),
        "env": [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "ports": [{"name": "metrics", "containerPort": OPERATOR_PORT}],
        "livenessProbe": _probe("/healthz", period=20, failures=3),
        "readinessProbe": _probe("/readyz", period=10, failures=3),
        "startupProbe": _probe("/healthz", period=2, failures=30),
        "resources": RESOURCES,
        "securityContext": {**restricted.CONTAINER, "readOnlyRootFilesystem": True},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*config, {"name": "token", "mountPath": TOKEN_FOLDER, "readOnly": True}],
    }


def _arguments(settings: Settings) -> list[str]:
    """`--bind` is on all addresses of the pod, because the kubelet probes it from outside."""
    arguments = ["operator", f"--bind=:{OPERATOR_PORT}"]
    if settings.namespaces:
        arguments.append(f"--namespaces={','.join(settings.namespaces)}")
    if settings.cloud:
        arguments.append(f"--config={CONFIG_FOLDER}/{CONFIG_KEY}")
    return arguments


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "metrics"},
        "periodSeconds": period,
        "failureThreshold": failures,
        "timeoutSeconds": 5,
    }


def _volumes(settings: Settings) -> list[Manifest]:
    """The token volume that every pod gets by default, but declared here, so that nothing else is mounted."""
    sources: list[dict[str, Any]] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    config = [{"name": "config", "configMap": {"name": CONFIG_NAME}}] if settings.cloud else []
    return [*config, {"name": "token", "projected": {"sources": sources}}]


def _spread() -> Manifest:
    """Replicas are spread over nodes, because two operators on one node would be lost together."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": LABELS},
    }
