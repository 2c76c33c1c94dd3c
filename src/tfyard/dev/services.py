"""Routes and names of Services: which address leads to which pods, and by which names. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from tfyard.node.hosts import Name
from tfyard.views.metadata import Object
from tfyard.views.objects import Endpoint, Slice

HEADLESS = "None"

Key = tuple[str, str]
"""(namespace, name)."""
Address = tuple[str, int]


class RelayedPort(Struct, frozen=True):
    port: int
    name: str = ""
    protocol: str = "TCP"


class RelayedSpec(Struct, frozen=True, rename="camel"):
    cluster_ip: str = field(default="", name="clusterIP")
    ports: list[RelayedPort] = []
    session_affinity: str = ""


class RelayedService(Object, frozen=True):
    spec: RelayedSpec = RelayedSpec()


def key_of(each: Object) -> Key:
    return each.metadata.namespace, each.name


class Route(Struct, frozen=True):
    """Targets of connections to one port of a Service."""

    targets: tuple[Address, ...]
    is_sticky: bool = False
    """Whether each client stays with its pod (`sessionAffinity: ClientIP`)."""


Slices = Mapping[Key, list[Slice]]


def by_service(slices: Iterable[Slice]) -> Slices:
    grouped: dict[Key, list[Slice]] = {}
    for each in slices:
        if each.address_type == "IPv4":
            grouped.setdefault((each.metadata.namespace, each.service), []).append(each)
    return grouped


def routes(services: Iterable[RelayedService], slices: Slices) -> dict[Address, Route]:
    """Cluster address -> pods. A Service without ready pods has no route: its connections are refused."""
    by_address = {}
    for service in services:
        if not _has_cluster_ip(service):
            continue
        for port in service.spec.ports:
            targets = tuple(_targets(port, slices.get(key_of(service), [])))
            if targets and port.protocol == "TCP":
                is_sticky = service.spec.session_affinity == "ClientIP"
                by_address[service.spec.cluster_ip, port.port] = Route(targets, is_sticky)
    return by_address


def _targets(port: RelayedPort, slices: list[Slice]) -> Iterable[Address]:
    for each in slices:
        numbers = [other.port for other in each.ports or [] if (other.name or "") == port.name]
        for number in filter(None, numbers):
            yield from ((endpoint.addresses[0], number) for endpoint in each.ready)


def names(services: Iterable[RelayedService], slices: Slices) -> list[Name]:
    """Names of Services with their cluster addresses; the name of a headless Service leads to its pods."""
    known = []
    for service in services:
        if _has_cluster_ip(service):
            known.append(_name(service.metadata.name, service, [service.spec.cluster_ip]))
        elif service.spec.cluster_ip == HEADLESS:
            known += _headless(service, slices.get(key_of(service), []))
    return known


def _headless(service: RelayedService, slices: list[Slice]) -> list[Name]:
    """Names of a headless Service; pods with a hostname also have names below that of their Service."""
    ready = [endpoint for each in slices for endpoint in each.ready]
    every = [_name(service.metadata.name, service, _addresses(ready))] if ready else []
    hostnames = {endpoint.hostname: endpoint.addresses for endpoint in ready if endpoint.hostname}
    names = [_name(f"{host}.{service.metadata.name}", service, hostnames[host]) for host in hostnames]
    return [*every, *names]


def _name(name: str, service: RelayedService, addresses: Sequence[str]) -> Name:
    return Name(name, service.metadata.namespace, tuple(addresses))


def _addresses(endpoints: list[Endpoint]) -> list[str]:
    return sorted({address for endpoint in endpoints for address in endpoint.addresses})


def _has_cluster_ip(service: RelayedService) -> bool:
    """Whether the Service is neither headless nor an ExternalName, which has no address."""
    return service.spec.cluster_ip not in ("", HEADLESS)
