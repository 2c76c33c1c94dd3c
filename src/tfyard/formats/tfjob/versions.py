"""Every published version of TFJob and its defaults."""

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.model import API_VERSION, CleanPolicy, Dialect


class Defaults(Struct, frozen=True, kw_only=True):
    """The defaults in which versions differ."""

    clean: CleanPolicy
    dialect: Dialect


V1 = API_VERSION
"""The version that tfyard writes and that clusters store."""
VERSIONS = {
    V1: Defaults(clean="None", dialect="tf2"),
    "kubeflow.org/v1beta2": Defaults(clean="Running", dialect="tf1"),
    # v1beta1 had no deadline and no backoff limit; both are accepted.
    "kubeflow.org/v1beta1": Defaults(clean="Running", dialect="tf1"),
    # The first version with a map of roles. Its documentation gives All as the default; its code used Running.
    "kubeflow.org/v1alpha2": Defaults(clean="Running", dialect="tf1"),
    # A list of roles, as v1alpha1.py declares it.
    "kubeflow.org/v1alpha1": Defaults(clean="All", dialect="tf1"),
    # The first operator (2017) deleted no pods at the end, so that `kubectl logs` still worked.
    "tensorflow.org/v1alpha1": Defaults(clean="None", dialect="tf1"),
}
SERVED = (V1, "kubeflow.org/v1beta1")
"""Versions that a cluster serves by default. They are few, because the API server decodes every change of a job
once for each served version."""
DEFAULT_VERSIONS = ",".join(name.removeprefix("kubeflow.org/") for name in SERVED)
"""The versions that are served by default, in the notation of `--versions`."""


def why_not_served(api_version: str) -> str:
    """A message for a version that clusters do not serve by default; empty for the others."""
    if api_version not in VERSIONS or api_version in SERVED:
        return ""
    return f"{api_version} is not served by default; `tfyard crds --versions all` serves it"


def chosen(text: str) -> list[str]:
    """The versions that a value of `--versions` names: v1,v1alpha2,tensorflow.org/v1alpha1, or all."""
    if text == "all":
        return list(VERSIONS)
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = [word if "/" in word else f"kubeflow.org/{word}" for word in words]
    if unknown := [name for name in names if name not in VERSIONS]:
        raise Usage(f"--versions: {', '.join(unknown)} not found; one of: {', '.join(VERSIONS)}, or all")
    return names
