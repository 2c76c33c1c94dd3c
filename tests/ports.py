"""A port of this machine for a server that a test starts."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Nobody else gets it meanwhile. Servers that set SO_REUSEADDR, as those of Python and Jupyter do, may listen
    on it, because it is bound here and not listened on."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
