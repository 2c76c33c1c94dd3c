"""Networking of a cluster: its private network, and the sockets and process that stay outside of it.

It is set up first, because only a process without threads can enter namespaces."""

import contextlib
import socket

from msgspec import Struct

from tfyard.controlplane.components import LOOPBACK, ON_LOOPBACK, Addresses
from tfyard.dev.folder import UpOptions
from tfyard.dev.journal import Journal
from tfyard.dev.outside import Outside
from tfyard.errors import Usage
from tfyard.node.linux_namespaces import unshare_mounts
from tfyard.node.network import BoxNetwork

PORTS = {"kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}


SHARED = "pods share the network of this machine, and host:port pairs of jobs become 127.0.0.1:port"


class Networking(Struct, frozen=True):
    listener: socket.socket
    """Socket of the only port of the machine that a cluster uses."""
    network: BoxNetwork | None = None
    """The private network; None where the system refuses it: then all processes use the machine's own network."""
    outside: Outside | None = None

    @classmethod
    def enter(cls, settings: UpOptions, journal: Journal) -> "Networking":
        """Enter the private network, after the listener is made: a socket stays in the network of its origin."""
        listener, outside = _listener(settings), Outside()
        try:
            return cls(listener, BoxNetwork.enter(), outside)
        except OSError as refusal:
            outside.close()
            journal.note(f"{SHARED}: {refusal.strerror}")
        with contextlib.suppress(OSError):
            unshare_mounts()  # mounts of pods end with this process; where it is refused, pods mount nothing
        return cls(listener)

    def leave(self) -> None:
        if self.outside is not None:
            self.outside.close()
        self.listener.close()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def addresses(self) -> Addresses:
        if self.network is None:
            return ON_LOOPBACK
        return Addresses(self.network.address, PORTS, str(self.network.services))


def _listener(settings: UpOptions) -> socket.socket:
    if settings.last_port and not settings.port:
        with contextlib.suppress(Usage):  # another program has it by now
            return _listen(settings.last_port)
    return _listen(settings.port)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(128)
    except OSError as problem:
        listener.close()
        raise Usage(f"--port {port}: {problem.strerror}; choose another, or none for a free one") from problem
    return listener
