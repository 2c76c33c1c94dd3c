"""This machine as a node: what all its pods share."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from tfyard.model import Manifest

from .engine import Engine
from .hosts import HostsFiles
from .pod_data import LOOPBACK
from .processes import ContainerCommand, Exit
from .volumes import Sources


class PodNetwork(Protocol):
    @property
    def path(self) -> str:
        """Path of the network namespace, for processes to join."""

    @property
    def address(self) -> str: ...

    def connect(self, port: int) -> socket.socket:
        """Connect to a port inside the pod; OSError if nothing listens there."""


class Networks(Protocol):
    hosts: HostsFiles
    """The /etc/hosts of pods, kept up to date."""

    def add(self, name: str) -> PodNetwork: ...
    def remove(self, network: Any) -> None:
        """Remove a network that `add` has returned."""


class PodOwner(Protocol):
    """The creator of a pod: decides what manifests leave open, and is notified of what happens."""

    folder: Path
    """Folder of this pod alone."""

    def new_log(self, container: str, restarts: int) -> Path:
        """The file for the log of a run that starts now."""

    def may_restart(self, container: str) -> bool:
        """Asked before each restart in place. After a refusal, the container waits until its pod is stopped."""

    def changed(self) -> None: ...
    def tell(self, reason: str, message: str, container: str = "", *, warning: bool = False) -> None: ...
    def started(self, container: str, log: Path) -> None: ...
    def ended(self, container: str, exit: Exit, reason: str) -> None: ...


class ContainerHost(Protocol):
    """What a container needs of its pod."""

    engine: Engine
    owner: PodOwner
    stopping: asyncio.Event
    address: str
    policy: str
    grace: float
    uid: str
    name: str
    id: str

    async def command(self, container: Manifest, message: Path) -> ContainerCommand: ...
    def changed(self) -> None: ...


class NodeOptions(Struct, frozen=True, kw_only=True):
    """Settings of a node."""

    host_ip: str = LOOPBACK
    rewrite: Callable[[str, str], str] = lambda text, _namespace: text
    """Changes arguments and variables of a pod in a namespace: where pods share one network, two cannot have the
    same port."""
    allocatable: Mapping[str, str] = {}
    """Resources of the node, which the downward API shows as limits of containers that have none."""
    entrypoints: Mapping[str, list[str]] = {}
    """Image -> its entrypoint, because images are not used."""
    refuses_root: bool = False
    """Containers with `runAsNonRoot` do not start if this process runs as root."""
    input_of: str = ""
    """Name of the container that has our standard input; empty: none."""
    work: Path | None = None
    """Folder of the working directories of containers that name none; None: they work in /."""


class Node(Struct, frozen=True, kw_only=True):
    """What all pods share. Without `networks`, that includes the network of this machine."""

    engine: Engine
    sources: Sources
    base_env: Mapping[str, str]
    """Variables of every process."""
    networks: Networks | None = None
    options: NodeOptions = NodeOptions()

    def with_entrypoint(self, container: Manifest) -> Manifest:
        entrypoint = self.options.entrypoints.get(str(container.get("image")))
        is_needed = entrypoint and not container.get("command")
        return {**container, "command": entrypoint} if is_needed else container
