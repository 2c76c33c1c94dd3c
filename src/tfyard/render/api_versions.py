"""API versions that no supported Kubernetes serves any more, and their replacements."""

from collections.abc import Iterable

from tfyard.model import Manifest, Problem
from tfyard.model.permission import RBAC

_APPS = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
_ROLES = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
_NETWORK = "networking.k8s.io/v1"

REMOVED: dict[str, dict[str, str]] = {
    "extensions/v1beta1": {
        **dict.fromkeys(_APPS, "apps/v1"),
        "Ingress": _NETWORK,
        "NetworkPolicy": _NETWORK,
        "Job": "batch/v1",
    },
    "apps/v1beta1": dict.fromkeys(_APPS, "apps/v1"),
    "apps/v1beta2": dict.fromkeys(_APPS, "apps/v1"),
    "batch/v1beta1": {"CronJob": "batch/v1"},
    "batch/v2alpha1": {"CronJob": "batch/v1"},
    "networking.k8s.io/v1beta1": {"Ingress": _NETWORK},
    "policy/v1beta1": {"PodDisruptionBudget": "policy/v1"},
    "autoscaling/v2beta1": {"HorizontalPodAutoscaler": "autoscaling/v2"},
    "autoscaling/v2beta2": {"HorizontalPodAutoscaler": "autoscaling/v2"},
    f"{RBAC}/v1alpha1": dict.fromkeys(_ROLES, f"{RBAC}/v1"),
    f"{RBAC}/v1beta1": dict.fromkeys(_ROLES, f"{RBAC}/v1"),
    "storage.k8s.io/v1beta1": {"StorageClass": "storage.k8s.io/v1"},
    "scheduling.k8s.io/v1beta1": {"PriorityClass": "scheduling.k8s.io/v1"},
}
"""Version -> kind -> today's version."""


def warnings(manifest: Manifest) -> Iterable[Problem]:
    version, kind = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    today = REMOVED.get(version, {}).get(kind)
    if today is not None:
        text = f"no cluster serves {version} {kind} any more"
        yield Problem(("apiVersion",), text, f"apiVersion: {today}{_selector(manifest)}", severity="warning")


def _selector(manifest: Manifest) -> str:
    """Advice on the selector, which the old versions derived from the pod's labels and apps/v1 requires."""
    spec = manifest.get("spec")
    if manifest["kind"] not in _APPS or not isinstance(spec, dict) or "selector" in spec:
        return ""
    return ", and a spec.selector with matchLabels, the labels of the pods"
