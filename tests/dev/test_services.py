"""Routes and names that follow from Services and their endpoints."""

from typing import Any

import msgspec

from tfyard.dev.services import RelayedService, by_service, names, routes
from tfyard.node.hosts import Name
from tfyard.views.objects import Slice


def service(name: str, cluster_ip: str, *ports: dict[str, Any], **spec: Any) -> RelayedService:
    metadata = {"name": name, "namespace": "ml", "resourceVersion": "1"}
    body = {"metadata": metadata, "spec": {"clusterIP": cluster_ip, "ports": list(ports), **spec}}
    return msgspec.convert(body, RelayedService)


def endpoints(of: str, *each: dict[str, Any], kind: str = "IPv4", ports: Any = None) -> Slice:
    labels = {"kubernetes.io/service-name": of}
    metadata = {"name": f"{of}-x", "namespace": "ml", "resourceVersion": "1", "labels": labels}
    body = {"metadata": metadata, "addressType": kind, "endpoints": list(each), "ports": ports}
    return msgspec.convert(body, Slice)


READY = {"addresses": ["10.244.0.2"], "conditions": {"ready": True}, "hostname": "w-0"}
UNKNOWN = {"addresses": ["10.244.0.3"], "conditions": {}}
NOT_READY = {"addresses": ["10.244.0.4"], "conditions": {"ready": False}, "hostname": "w-2"}


def test_a_port_leads_to_the_port_of_the_same_name_of_every_ready_pod() -> None:
    web = service("web", "10.96.0.9", {"port": 80, "name": "http"}, {"port": 81, "name": "admin"})
    ports = [{"name": "http", "port": 8080}, {"name": "admin", "port": 8081}]
    slices = by_service([endpoints("web", READY, UNKNOWN, NOT_READY, ports=ports)])
    found = routes([web], slices)
    assert found["10.96.0.9", 80].targets == (("10.244.0.2", 8080), ("10.244.0.3", 8080))
    assert found["10.96.0.9", 81].targets == (("10.244.0.2", 8081), ("10.244.0.3", 8081))


def test_what_cannot_be_served_has_no_route() -> None:
    ports = [{"name": "", "port": 53, "protocol": "UDP"}]
    dns = service("dns", "10.96.0.10", {"port": 53, "protocol": "UDP"})
    idle, headless = service("idle", "10.96.0.11", {"port": 80}), service("ring", "None", {"port": 80})
    slices = by_service(
        [
            endpoints("dns", READY, ports=ports),
            endpoints("idle", NOT_READY, ports=[{"name": "", "port": 80}]),
            endpoints("ring", READY, ports=[{"name": "", "port": 80}]),
        ]
    )
    assert routes([dns, idle, headless], slices) == {}


def test_clients_stay_with_their_pod_if_the_service_says_so() -> None:
    web = service("web", "10.96.0.9", {"port": 80}, sessionAffinity="ClientIP")
    slices = by_service([endpoints("web", READY, ports=[{"name": "", "port": 80}])])
    assert routes([web], slices)["10.96.0.9", 80].is_sticky


def test_a_headless_service_is_the_name_of_its_ready_pods() -> None:
    slices = by_service([endpoints("ring", READY, UNKNOWN, NOT_READY), endpoints("ring", READY, kind="IPv6")])
    assert names([service("ring", "None"), service("web", "10.96.0.9")], slices) == [
        Name("ring", "ml", ("10.244.0.2", "10.244.0.3")),
        Name("w-0.ring", "ml", ("10.244.0.2",)),
        Name("web", "ml", ("10.96.0.9",)),
    ]


def test_what_has_no_address_has_no_name() -> None:
    elsewhere = service("elsewhere", "", type="ExternalName", externalName="db.example")
    assert names([elsewhere, service("empty", "None")], by_service([])) == []
