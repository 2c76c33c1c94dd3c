"""A cluster as a backend: what is there is watched, what was decided is written."""

from .cache import Cache, JobKey
from .events import EventRecorder
from .objects import ObjectWriter
from .resources import OLD_TFJOBS, TFJOBS, Resources
from .runner import ClusterRunner
from .setup_events import SetupEvents
from .store import ClusterStore
from .writes import NotLeading, Writer

__all__ = [
    "OLD_TFJOBS",
    "TFJOBS",
    "Cache",
    "ClusterRunner",
    "ClusterStore",
    "EventRecorder",
    "JobKey",
    "NotLeading",
    "ObjectWriter",
    "Resources",
    "SetupEvents",
    "Writer",
]
