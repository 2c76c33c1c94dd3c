"""The names that pods see, in the /etc/hosts of each: there is no DNS server on this node."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

DOMAIN = ".svc.cluster.local"
HEAD = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
"""


class Name(Struct, frozen=True):
    """Of a Service, or `hostname.service` of a pod behind it, with its addresses."""

    name: str
    namespace: str
    addresses: tuple[str, ...]


class OwnNames(Struct, frozen=True):
    """What a pod's own manifest says."""

    address: str
    hostname: str
    subdomain: str = ""
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """`hostAliases`: addresses and their names."""


def hosts_of(own: OwnNames, namespace: str, names: str) -> str:
    """The whole file. `names` is what `lines` makes for the namespace."""
    full = f"{own.hostname}.{own.subdomain}.{namespace}{DOMAIN}\t" if own.subdomain else ""
    aliases = "".join(f"{address}\t{' '.join(given)}\n" for address, given in own.aliases)
    return f"{HEAD}{own.address}\t{full}{own.hostname}\n{aliases}{names}"


def lines(names: Iterable[Name], namespace: str) -> str:
    """As a pod in this namespace sees them. With several addresses, a name has several lines."""
    return "".join(
        f"{address}\t{' '.join(_forms(name, namespace))}\n" for name in names for address in name.addresses
    )


def _forms(name: Name, seen_from: str) -> list[str]:
    """A cluster's DNS answers all of them; the short one only in the same namespace."""
    base = f"{name.name}.{name.namespace}"
    short = [name.name] if name.namespace == seen_from else []
    return [f"{base}{DOMAIN}", f"{base}.svc", base, *short]


class HostsFiles:
    """The files of this node's pods, rewritten when names change."""

    def __init__(self) -> None:
        self.writes = 0
        self._files: dict[str, tuple[Path, str, OwnNames]] = {}
        self._names: tuple[Name, ...] = ()
        self._by_name: dict[str, tuple[str, ...]] = {}

    def add(self, pod_uid: str, path: Path, namespace: str, own: OwnNames) -> None:
        """Write the file, and keep it up to date until `remove`."""
        self._files[pod_uid] = (path, namespace, own)
        path.touch(0o644)
        self._write(path, hosts_of(own, namespace, lines(self._names, namespace)))

    def remove(self, pod_uid: str) -> None:
        self._files.pop(pod_uid, None)

    def set_names(self, names: Iterable[Name]) -> None:
        """Replace all names. Nothing is written if none has changed."""
        names = tuple(sorted(names, key=lambda name: (name.namespace, name.name)))
        if names == self._names:
            return
        self._names = names
        self._by_name = {f"{name.name}.{name.namespace}": name.addresses for name in names}
        texts = {seen_from: lines(names, seen_from) for _, seen_from, _ in self._files.values()}
        for path, namespace, own in self._files.values():
            self._write(path, hosts_of(own, namespace, texts[namespace]))

    def addresses(self, host: str, asked_by: str) -> tuple[str, ...]:
        """Of a name, as the pod with the address `asked_by` sees it."""
        base = host.removesuffix(".").removesuffix(DOMAIN).removesuffix(".svc")
        seen_from = {own.address: namespace for _, namespace, own in self._files.values()}
        short = f"{base}.{seen_from.get(asked_by, '')}"
        return self._by_name.get(base) or self._by_name.get(short) or ()

    def _write(self, path: Path, text: str) -> None:
        """In place: a new file would not appear in the pods, which have this very one mounted. Never shorter than
        before until the end, so that no reader finds half of an old line after the new ones."""
        data = text.encode()
        try:
            file = path.open("r+b", buffering=0)
        except FileNotFoundError:
            return  # the pod has just gone
        with file:
            file.write(data.ljust(os.fstat(file.fileno()).st_size, b"\n"))
            file.truncate(len(data))
        self.writes += 1
