"""How we talk to Kubernetes: one thin async client.

Requests are built by pure functions (`requests`) and sent by `Client`; the answer is a view of the caller's choice
(`Kind`) or one of `errors`. It knows no TFJob, has no cache, and does not decide what to do next.
"""

from tfyard.kube.errors import (
    AlreadyExists,
    BadKubeconfig,
    Conflict,
    Expired,
    Forbidden,
    KubeError,
    NotFound,
    Refused,
    ServerFault,
    TooManyRequests,
    Transient,
    Unauthorized,
    Undecodable,
    Unprocessable,
    Unreachable,
)
from tfyard.kube.kinds import Kind
from tfyard.kube.kubeconfig import Access, Cluster, User
from tfyard.kube.lists import Listing, list_all
from tfyard.kube.requests import Patch, Request, Resource
from tfyard.kube.transport import Client, Limits
from tfyard.kube.watch import Changed, Removed, Snapshot, WatchOptions, watch, watch_lines

__all__ = [
    "Access",
    "AlreadyExists",
    "BadKubeconfig",
    "Changed",
    "Client",
    "Cluster",
    "Conflict",
    "Expired",
    "Forbidden",
    "Kind",
    "KubeError",
    "Limits",
    "Listing",
    "NotFound",
    "Patch",
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
    "list_all",
    "watch",
    "watch_lines",
]
