"""A user whom a bearer token of the cluster proves: nothing else of them is needed, and nothing else is sent."""

import base64
import binascii
import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakSet

import msgspec
from msgspec import Struct

from tfyard.dashboard.addresses import Address
from tfyard.dashboard.identity import JobSource, ViewerIdentity
from tfyard.errors import NoSuchJob, Usage
from tfyard.kube import Access, ClusterEntry, Forbidden, NotFound, Unauthorized, User
from tfyard.kube.sync import SyncClient
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.names import DNS_LABEL
from tfyard.remote.installing.doctor import WHO_AM_I
from tfyard.sdk import finding
from tfyard.sdk.finding import Search
from tfyard.sdk.jobs_on_cluster import JobsOnCluster
from tfyard.sdk.place import Place

ALL = "*"
"""The choice of all namespaces, for users who may list the jobs of all."""
MOST_NAMESPACES, LONGEST_TOKEN = 10, 16_384
_TOKEN = re.compile(r"[\x21-\x7e]+")
_ACCOUNT = re.compile(r"system:serviceaccount:([^:]+):[^:]+")
ANONYMOUS = "system:anonymous"


class Bearer(Struct, frozen=True):
    token: str
    user: str
    """Name of the user, as the server knows them; empty: an old server that does not tell it."""

    def __repr__(self) -> str:
        """The token must not get into a log."""
        return f"Bearer({self.user!r})"

    @property
    def own_namespace(self) -> str:
        """The namespace of a ServiceAccount; empty for people."""
        found = _ACCOUNT.fullmatch(self.user)
        return found[1] if found else ""


def is_token(text: str) -> bool:
    """Whether the text can be sent as a token at all: in a header, it could end the line."""
    return len(text) <= LONGEST_TOKEN and _TOKEN.fullmatch(text) is not None


def ask(cluster: ClusterEntry, token: str) -> Bearer | None:
    """Ask the server whose token this is; None: the server does not accept the token. The call blocks."""
    with SyncClient(Access(cluster, User(token=token))) as client:
        try:
            user = str(client.send(WHO_AM_I)["status"]["userInfo"]["username"])
        except Unauthorized:
            return None
        except (NotFound, Forbidden):
            return Bearer(token, "")  # before Kubernetes 1.28
    return None if user == ANONYMOUS else Bearer(token, user)


def lasts(token: str) -> float:
    """Seconds until the expiry that a JSON web token claims. It is not verified, because it can only shorten
    the session."""
    try:
        body = token.split(".")[1]
        end = msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=_Claims).exp
    except (IndexError, ValueError, binascii.Error, *CORRUPT_JSON):
        return float("inf")
    return float("inf") if end is None else end - time.time()


class _Claims(Struct):
    exp: float | None = None


def namespaces(text: str) -> tuple[str, ...]:
    """The namespaces that a user names; raises Usage with all that can be none."""
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if ALL in names:
        return (ALL,)
    problems = [name for name in names if not DNS_LABEL.fullmatch(name)]
    if problems:
        raise Usage(f"{', '.join(problems)}: no name of a namespace; `{ALL}` means all namespaces")
    if len(names) > MOST_NAMESPACES:
        raise Usage(f"{len(names)} namespaces: a page shows at most {MOST_NAMESPACES}; `{ALL}` means all")
    return names


class Connections:
    """All connections of one bearer that are in use, also those on which a watch waits in its thread."""

    def __init__(self, cluster: ClusterEntry, token: str) -> None:
        self._cluster, self._token = cluster, token
        self._clients, self._lock = WeakSet[SyncClient](), threading.Lock()

    def open(self, namespace: str) -> SyncClient:
        client = SyncClient(Access(self._cluster, User(token=self._token), namespace))
        with self._lock:
            self._clients.add(client)
        return client

    def interrupt(self) -> None:
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            client.interrupt()


def identity(cluster: ClusterEntry, bearer: Bearer, names: Sequence[str], selector: str) -> ViewerIdentity:
    connections = Connections(cluster, bearer.token)
    connect = connections.open
    return ViewerIdentity(
        sources=[_source(partial(connect, name), name, selector) for name in names],
        find=partial(_find, connect),
        connect=partial(connect, names[0] if names[0] != ALL else "default"),
        disconnect=connections.interrupt,
        opens_pages=False,
        user=bearer.user or "signed in",
        namespaces=tuple(names),
    )


def _source(connect: Callable[[], SyncClient], name: str, selector: str) -> JobSource:
    title = "all namespaces" if name == ALL else f"namespace {name}"
    return JobSource(title, JobsOnCluster(connect, _quiet, selector=selector, all_namespaces=name == ALL))


def _find(connect: Callable[[str], SyncClient], address: Address) -> Place:
    if not address.namespace:
        raise NoSuchJob("this page runs in the cluster: there are no runs of a machine here")
    address.require_name()
    search = Search(
        connect=partial(connect, address.namespace), is_whole=True, has_namespace=True, say=_quiet
    )
    return finding.find(address.name, search)


def _quiet(_text: str) -> None:
    """The page has no terminal; what it must tell, it tells on the page."""
