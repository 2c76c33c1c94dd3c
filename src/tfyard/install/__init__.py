"""What is installed on a cluster, as declarations: CRDs, roles and the operator's Deployment. Pure."""

from .objects import namespace, objects
from .settings import NAME, REPOSITORY, Settings

__all__ = ["NAME", "REPOSITORY", "Settings", "namespace", "objects"]
