"""What all pods of this node share: the API, folders, processes, networks, and what the node's owner decides."""

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from tfyard.kube import Client
from tfyard.kubelet.engine import Engine
from tfyard.kubelet.events import Events
from tfyard.kubelet.volumes import Shares, folder_name
from tfyard.model import Manifest
from tfyard.node.hosts import HostsFiles

LOOPBACK = "127.0.0.1"


class PodNetwork(Protocol):
    @property
    def path(self) -> str:
        """Of the network namespace, for processes to join."""

    @property
    def address(self) -> str: ...

    def connect(self, port: int) -> socket.socket:
        """To a port inside the pod; OSError if nobody listens there."""


class Networks(Protocol):
    def add(self, name: str) -> PodNetwork: ...
    def remove(self, network: Any) -> None:
        """One that `add` has returned."""


class Options(Struct, frozen=True, kw_only=True):
    """What the owner of the node decides."""

    node: str = "localhost"
    host_ip: str = LOOPBACK
    api: tuple[str, int] = (LOOPBACK, 443)
    """Where pods reach the apiserver."""
    hosts: HostsFiles | None = None
    """Keeps the /etc/hosts of pods up to date."""
    rewrite: Callable[[str, str], str] = lambda text, _namespace: text
    """Of arguments and variables of a pod in a namespace: where pods share one network, two cannot have the same
    port."""
    allocatable: Mapping[str, str] = {}
    """What the node has: the limits of containers that have none, for whoever asks by the downward API."""
    entrypoints: Mapping[str, list[str]] = {}
    """Image -> what its entrypoint would be, because images are not used."""


class Surroundings(Struct, frozen=True, kw_only=True):
    client: Client
    engine: Engine
    events: Events
    folder: Path
    base_env: Mapping[str, str]
    networks: Networks | None
    options: Options

    @property
    def host_ip(self) -> str:
        return self.options.host_ip

    @property
    def api(self) -> tuple[str, int]:
        return self.options.api

    @property
    def shares(self) -> Shares:
        """Whoever has given pods networks of their own has entered a mount namespace of its own, too."""
        return Shares(self.folder / "shares", may_mount=self.networks is not None)

    def pod_folder(self, namespace: str, name: str, uid: str) -> Path:
        return self.folder / "pods" / folder_name(namespace, name, uid)

    def with_entrypoint(self, container: Manifest) -> Manifest:
        entrypoint = self.options.entrypoints.get(str(container.get("image")))
        return (
            {**container, "command": entrypoint} if entrypoint and not container.get("command") else container
        )

    def add_hosts(self, pod: Manifest, address: str, path: Path) -> None:
        path.touch()
        if self.options.hosts is not None:
            self.options.hosts.add_pod(pod, address, path)

    def remove_hosts(self, uid: str) -> None:
        if self.options.hosts is not None:
            self.options.hosts.remove(uid)
