"""The metrics API tells what was measured, in the units and forms of a metrics-server."""

import re
from typing import Any

from tfyard.kubelet.metrics import HOST, pod_metrics, registration
from tfyard.model.quantity import amount
from tfyard.node.memory import Use
from tfyard.overview import top

POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "ns", "uid": "1", "labels": {"a": "b"}}}


def test_the_numbers_of_a_pod_are_those_of_its_containers() -> None:
    uses = {"main": (Use(1.25, 300 << 20), 15.02), "sidecar": (Use(0.0000005, 5000), 3.0)}
    found = pod_metrics(POD, uses)
    assert found["containers"] == [
        {"name": "main", "usage": {"cpu": "1250000000n", "memory": "307200Ki"}},
        {"name": "sidecar", "usage": {"cpu": "500n", "memory": "4Ki"}},
    ]
    assert (found["kind"], found["apiVersion"], found["window"]) == (
        "PodMetrics",
        "metrics.k8s.io/v1beta1",
        "15.020s",
    )
    assert found["metadata"].items() >= {"name": "p", "namespace": "ns", "labels": {"a": "b"}}.items()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["timestamp"])
    assert top.pod_use(found) == (1.2500005, (300 << 20) + 4096)
    assert amount(found["containers"][0]["usage"]["cpu"]) == amount("1250m")


def test_the_apiserver_reaches_it_by_an_address_and_knows_it_by_a_name() -> None:
    service, api, role = registration("127.0.0.1", 1234, b"pem").values()
    assert service["spec"] == {"type": "ExternalName", "externalName": "127.0.0.1"}
    where = api["spec"]["service"]
    assert f"{where['name']}.{where['namespace']}.svc" == HOST
    assert (where["port"], api["spec"]["caBundle"]) == (1234, "cGVt")
    assert role["rules"][0]["verbs"] == ["get", "list"]
