"""Every published version of TFJob, and what each one does with fields that are absent."""

from msgspec import Struct

from tfyard.model import CleanPolicy, Dialect


class Defaults(Struct, frozen=True, kw_only=True):
    """In what a version differs from the others."""

    clean: CleanPolicy
    dialect: Dialect


V1 = "kubeflow.org/v1"
"""The version that we write, and the one that clusters store."""
VERSIONS = {
    V1: Defaults(clean="None", dialect="tf2"),
    "kubeflow.org/v1beta2": Defaults(clean="Running", dialect="tf1"),
    # It had no deadline and no backoff limit; both are accepted.
    "kubeflow.org/v1beta1": Defaults(clean="Running", dialect="tf1"),
    # The first version with a map of roles. Its documentation of cleanPodPolicy says All; its code did Running.
    "kubeflow.org/v1alpha2": Defaults(clean="Running", dialect="tf1"),
    # A list of roles, as v1alpha1.py declares it.
    "kubeflow.org/v1alpha1": Defaults(clean="All", dialect="tf1"),
    "tensorflow.org/v1alpha1": Defaults(clean="All", dialect="tf1"),
}
