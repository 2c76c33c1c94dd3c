"""What can be chosen when the operator is installed, and the names of what is installed."""

from typing import Final

from msgspec import Struct

from tfyard.formats.tfjob.versions import SERVED

NAME: Final = "tf-job-operator"
"""Of the Deployment, its ServiceAccount and its roles: as the first TFJob operator (2017) was called, so that what
was written about it still finds it."""
CONFIG_NAME: Final = "tf-job-operator-config"
CONFIG_KEY: Final = "controller_config_file.yaml"
REPOSITORY: Final = "tfyard/operator"
LABELS: Final = {"app.kubernetes.io/component": "operator", "app.kubernetes.io/name": "tfyard"}
"""On everything that is installed but the CRDs, so that it can be found again."""


class Settings(Struct, frozen=True, kw_only=True):
    """The defaults are those of `tfyard install`, of manifests/install.yaml and of the Helm chart."""

    image: str
    namespace: str = "tfyard"
    namespaces: tuple[str, ...] = ()
    """Those whose TFJobs it runs; none: all of them."""
    cloud: str = ""
    """A key of `clouds.CONFIGS`; empty: no config file."""
    replicas: int = 1
    versions: tuple[str, ...] = SERVED
    """Of TFJob, served by the cluster."""

    @property
    def is_cluster_wide(self) -> bool:
        return not self.namespaces
