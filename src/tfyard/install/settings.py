"""Settings of an installation, and the names of the installed objects."""

from typing import Final

from msgspec import Struct

from tfyard.formats.tfjob.versions import SERVED

from . import clouds

NAME: Final = "tf-job-operator"
"""Name of the Deployment, its ServiceAccount and its roles: the name of the first TFJob operator (2017), so that
commands in documents about it still work."""
CONFIG_NAME: Final = "tf-job-operator-config"
CONFIG_KEY: Final = "controller_config_file.yaml"
REPOSITORY: Final = "tfyard/operator"
LABELS: Final = {"app.kubernetes.io/component": "operator", "app.kubernetes.io/name": "tfyard"}
"""Labels of all installed objects except the CRDs, so that they can be found."""


class Settings(Struct, frozen=True, kw_only=True):
    """The defaults are those of `tfyard install`, of manifests/install.yaml and of the Helm chart."""

    image: str
    namespace: str = "tfyard"
    namespaces: tuple[str, ...] = ()
    """Namespaces whose TFJobs the operator runs; empty: all namespaces."""
    cloud: str = ""
    """A key of `clouds.CONFIGS`; empty: no config file."""
    replicas: int = 1
    read_logs: bool = False
    """Whether the operator may read logs, for jobs with `stall`."""
    versions: tuple[str, ...] = SERVED
    """API versions of TFJob that the cluster serves."""

    @property
    def served(self) -> tuple[str, ...]:
        """With a cloud, v1alpha1 is served as well: the old documents that name a cloud use it."""
        return (*self.versions, clouds.VERSION) if self.cloud else self.versions

    @property
    def is_cluster_wide(self) -> bool:
        return not self.namespaces
