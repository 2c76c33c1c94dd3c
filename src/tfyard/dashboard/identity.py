"""The user for whom a page reads: which jobs they may see, and how one of them is reached. A value that is passed
in: the user of this machine with a kubeconfig, or the bearer of a token."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from tfyard.dashboard.addresses import Address
from tfyard.kube.sync import SyncClient
from tfyard.sdk.place import Jobs, Place


class JobSource(Struct, frozen=True):
    """Jobs that are listed together."""

    name: str
    """Where they are, in words: `cluster https://…`, `this machine`."""
    jobs: Jobs


class ViewerIdentity(Struct, frozen=True, kw_only=True):
    sources: Sequence[JobSource]
    find: Callable[[Address], Place]
    """Finds a job; raises as the commands of the terminal do. It blocks."""
    connect: Callable[[], SyncClient] | None = None
    """Connects to the cluster; None: no cluster is configured."""
    disconnect: Callable[[], None] = lambda: None
    """Ends all connections to the cluster at once, also those on which a watch waits."""
    opens_pages: bool = True
    """Whether TensorBoard and Jupyter can be opened from here, at ports of the user's own machine; otherwise their
    command is shown."""
    user: str = ""
    """Name of the user, where pages have many; empty: the user of this machine."""
    namespaces: tuple[str, ...] = ()
    """The namespaces that the user has named, where pages have many users."""
    options: str = ""
    """Options of the commands that the page shows, such as ` --context lab`."""
