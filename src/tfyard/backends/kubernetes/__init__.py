"""A cluster as the place where jobs happen: what is there is watched, what was decided is written."""

from .cache import Cache, JobKey
from .runner import ClusterRunner
from .store import ClusterStore

__all__ = ["Cache", "ClusterRunner", "ClusterStore", "JobKey"]
