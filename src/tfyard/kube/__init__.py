"""The client of Kubernetes' API: a thin async one, and a synchronous one for short commands.

Requests are built by pure functions (`requests`) and sent by `Client` or `sync.SyncClient`; the answer is a view
of the caller's choice (`Kind`) or one of `errors`. It knows no TFJob, has no cache, and does not decide what to do
next.

Modules that need aiohttp are imported on first use: a short command must not wait for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tfyard.kube.errors import (
    AlreadyExists,
    BadKubeconfig,
    Conflict,
    Expired,
    Forbidden,
    KubeError,
    NotFound,
    PortRefused,
    Refused,
    ServerFault,
    TooManyRequests,
    Transient,
    Unauthorized,
    Undecodable,
    Unprocessable,
    Unreachable,
    retry_after,
)
from tfyard.kube.kinds import Changed, Kind, Removed, Snapshot
from tfyard.kube.kubeconfig import Access, ClusterEntry, User
from tfyard.kube.requests import Patch, Request, Resource

if TYPE_CHECKING:
    from tfyard.kube.lists import Listing, list_all
    from tfyard.kube.transport import Client, Limits, before_sending, waiting_at_most
    from tfyard.kube.watches import WatchOptions, watch, watch_lines

__all__ = [
    "Access",
    "AlreadyExists",
    "BadKubeconfig",
    "Changed",
    "Client",
    "ClusterEntry",
    "Conflict",
    "Expired",
    "Forbidden",
    "Kind",
    "KubeError",
    "Limits",
    "Listing",
    "NotFound",
    "Patch",
    "PortRefused",
    "Refused",
    "Removed",
    "Request",
    "Resource",
    "ServerFault",
    "Snapshot",
    "TooManyRequests",
    "Transient",
    "Unauthorized",
    "Undecodable",
    "Unprocessable",
    "Unreachable",
    "User",
    "WatchOptions",
    "before_sending",
    "list_all",
    "retry_after",
    "waiting_at_most",
    "watch",
    "watch_lines",
]

_LATER = {
    "lists": ("Listing", "list_all"),
    "transport": ("Client", "Limits", "before_sending", "waiting_at_most"),
    "watches": ("WatchOptions", "watch", "watch_lines"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"tfyard.kube.{module}"), name)
            return value
    raise AttributeError(name)
