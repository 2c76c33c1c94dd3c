"""The names that pods see, in the /etc/hosts of each: there is no DNS server on this node."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from tfyard.model import Manifest

DOMAIN = ".svc.cluster.local"
HEAD = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
"""


class Name(Struct, frozen=True):
    """Name of a Service, or `hostname.service` of a pod behind it, with its addresses."""

    name: str
    namespace: str
    addresses: tuple[str, ...]


class HostsFile(Struct, frozen=True):
    """The /etc/hosts of one pod."""

    path: Path
    namespace: str
    address: str
    own: str
    """Lines that the manifest of the pod asks for."""


def hostname(pod: Manifest) -> str:
    """Hostname of a pod, as the kubelet chooses it; Linux has no longer ones."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def own_lines(pod: Manifest, address: str) -> str:
    """Lines that a kubelet writes: the pod's own names, and its `hostAliases`."""
    name, spec = hostname(pod), pod["spec"]
    subdomain, namespace = spec.get("subdomain"), pod["metadata"].get("namespace", "default")
    full = f"{name}.{subdomain}.{namespace}{DOMAIN} " if subdomain else ""
    aliases = [f"{alias['ip']}\t{' '.join(alias['hostnames'])}\n" for alias in spec.get("hostAliases") or []]
    return f"{HEAD}{address}\t{full}{name}\n{''.join(aliases)}"


def lines(names: Iterable[Name], namespace: str) -> str:
    """Lines of the names as a pod in this namespace sees them; one for each address of a name."""
    return "".join(
        f"{address}\t{' '.join(_forms(name, namespace))}\n" for name in names for address in name.addresses
    )


def _forms(name: Name, seen_from: str) -> list[str]:
    """Forms of a name that a cluster's DNS knows; the short one only in the same namespace."""
    base = f"{name.name}.{name.namespace}"
    short = [name.name] if name.namespace == seen_from else []
    return [f"{base}{DOMAIN}", f"{base}.svc", base, *short]


class HostsFiles:
    """The files of this node's pods, rewritten when names change."""

    def __init__(self) -> None:
        self.writes = 0
        self._files: dict[str, HostsFile] = {}
        self._names: tuple[Name, ...] = ()
        self._by_name: dict[str, tuple[str, ...]] = {}

    def add_pod(self, pod: Manifest, address: str, path: Path) -> None:
        """Write the file of a pod, and keep it up to date until `remove`."""
        namespace = pod["metadata"].get("namespace", "default")
        file = HostsFile(path, namespace, address, own_lines(pod, address))
        self._files[pod["metadata"]["uid"]] = file
        path.touch(0o644)
        self._write(path, file.own + lines(self._names, namespace))

    def remove(self, uid: str) -> None:
        self._files.pop(uid, None)

    def set_names(self, names: Iterable[Name]) -> None:
        """Replace all names. Nothing is written if none has changed."""
        names = tuple(sorted(names, key=lambda name: (name.namespace, name.name)))
        if names == self._names:
            return
        self._names = names
        self._by_name = {f"{name.name}.{name.namespace}": name.addresses for name in names}
        texts = {
            seen_from: lines(names, seen_from) for seen_from in {f.namespace for f in self._files.values()}
        }
        for file in self._files.values():
            self._write(file.path, file.own + texts[file.namespace])

    def addresses(self, host: str, asked_by: str) -> tuple[str, ...]:
        """Addresses of a name, as the pod with the address `asked_by` sees it."""
        base = host.removesuffix(".").removesuffix(DOMAIN).removesuffix(".svc")
        seen_from = {file.address: file.namespace for file in self._files.values()}
        short = f"{base}.{seen_from.get(asked_by, '')}"
        return self._by_name.get(base) or self._by_name.get(short) or ()

    def _write(self, path: Path, text: str) -> None:
        """Write in place: a new file would not appear in the pods, which have this very one mounted. It keeps its
        length until the end, so that no reader finds half of an old line after the new ones."""
        data = text.encode()
        try:
            file = path.open("r+b", buffering=0)
        except FileNotFoundError:
            return  # the pod has just been removed
        with file:
            file.write(data.ljust(os.fstat(file.fileno()).st_size, b"\n"))
            file.truncate(len(data))
        self.writes += 1
