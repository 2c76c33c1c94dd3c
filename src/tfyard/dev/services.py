"""What Services and their endpoints mean: which address leads to which pods, and by which names. Pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from tfyard.node.hosts import Name

SERVICE_NAME = "kubernetes.io/service-name"
HEADLESS = "None"

Key = tuple[str, str]
"""Namespace and name."""
Address = tuple[str, int]


class Meta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    resource_version: str
    labels: dict[str, str] = {}


class ServicePort(Struct, frozen=True):
    port: int
    name: str = ""
    protocol: str = "TCP"


class ServiceSpec(Struct, frozen=True, rename="camel"):
    cluster_ip: str = field(default="", name="clusterIP")
    ports: list[ServicePort] = []
    session_affinity: str = ""


class ServiceView(Struct, frozen=True):
    metadata: Meta
    spec: ServiceSpec

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name


class Conditions(Struct, frozen=True):
    ready: bool | None = None


class Endpoint(Struct, frozen=True):
    addresses: list[str]
    conditions: Conditions = Conditions()
    hostname: str | None = None

    @property
    def is_ready(self) -> bool:
        """Unknown means ready, and `publishNotReadyAddresses` makes all of them ready."""
        return self.conditions.ready is not False


class EndpointPort(Struct, frozen=True):
    port: int | None = None
    name: str | None = None
    protocol: str | None = None


class SliceView(Struct, frozen=True, rename="camel"):
    """Large Services have several slices."""

    metadata: Meta
    address_type: str
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def service(self) -> Key:
        return self.metadata.namespace, self.metadata.labels.get(SERVICE_NAME, "")

    @property
    def ready(self) -> list[Endpoint]:
        return [endpoint for endpoint in self.endpoints or [] if endpoint.is_ready]


class Route(Struct, frozen=True):
    """Where the connections to one port of a Service go."""

    targets: tuple[Address, ...]
    is_sticky: bool = False
    """`sessionAffinity: ClientIP`: each client stays with its pod."""


Slices = Mapping[Key, list[SliceView]]


def by_service(slices: Iterable[SliceView]) -> Slices:
    found: dict[Key, list[SliceView]] = {}
    for each in slices:
        if each.address_type == "IPv4":
            found.setdefault(each.service, []).append(each)
    return found


def routes(services: Iterable[ServiceView], slices: Slices) -> dict[Address, Route]:
    """Cluster address -> pods. A Service without ready pods has no route: its connections are refused."""
    found = {}
    for service in services:
        if not _has_cluster_ip(service):
            continue
        for port in service.spec.ports:
            targets = tuple(_targets(port, slices.get(service.key, [])))
            if targets and port.protocol == "TCP":
                is_sticky = service.spec.session_affinity == "ClientIP"
                found[service.spec.cluster_ip, port.port] = Route(targets, is_sticky)
    return found


def _targets(port: ServicePort, slices: list[SliceView]) -> Iterable[Address]:
    for each in slices:
        numbers = [other.port for other in each.ports or [] if (other.name or "") == port.name]
        for number in filter(None, numbers):
            yield from ((endpoint.addresses[0], number) for endpoint in each.ready)


def names(services: Iterable[ServiceView], slices: Slices) -> list[Name]:
    """A Service's name leads to its cluster address; that of a headless one, to its pods."""
    found = []
    for service in services:
        if _has_cluster_ip(service):
            found.append(_name(service.metadata.name, service, [service.spec.cluster_ip]))
        elif service.spec.cluster_ip == HEADLESS:
            found += _headless(service, slices.get(service.key, []))
    return found


def _headless(service: ServiceView, slices: list[SliceView]) -> list[Name]:
    """Pods with a hostname have names below that of their Service, too."""
    ready = [endpoint for each in slices for endpoint in each.ready]
    every = [_name(service.metadata.name, service, _addresses(ready))] if ready else []
    hostnames = {endpoint.hostname: endpoint.addresses for endpoint in ready if endpoint.hostname}
    names = [_name(f"{host}.{service.metadata.name}", service, hostnames[host]) for host in hostnames]
    return [*every, *names]


def _name(name: str, service: ServiceView, addresses: list[str]) -> Name:
    return Name(name, service.metadata.namespace, tuple(addresses))


def _addresses(endpoints: list[Endpoint]) -> list[str]:
    return sorted({address for endpoint in endpoints for address in endpoint.addresses})


def _has_cluster_ip(service: ServiceView) -> bool:
    """Not headless, and no ExternalName, which has none at all."""
    return service.spec.cluster_ip not in ("", HEADLESS)
