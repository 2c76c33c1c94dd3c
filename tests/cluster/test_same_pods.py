"""The table of pods on a cluster; tests/e2e/test_same_pods.py runs it without one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.clusters import Cluster, until
from tests.cluster.same_pods import FILES, Container, Row, read
from tfyard.controlplane.binaries import locate

pytestmark = [pytest.mark.cluster, pytest.mark.processes]
PATIENCE = 240.0
"""Seconds: a kubelet looks at scratch space every ten, and backs off for ten before a second restart."""


YOUNG = dict.fromkeys(("a-restart-policy-of-one-container", "restart-rules-by-exit-code"), 35)
"""File -> the first minor version of Kubernetes 1 that accepts its pod."""


def row_of(file: Path) -> Any:
    marks = [pytest.mark.since(YOUNG[file.stem], "restart rules of containers")] if file.stem in YOUNG else []
    return pytest.param(file, id=file.stem, marks=marks)


@pytest.fixture(scope="module")
def pods(empty: Cluster) -> Cluster:
    """All of them at once. Created, and not applied: that would add an annotation."""
    minor = locate().minor
    rows = [read(file) for file in FILES if YOUNG.get(file.stem, 0) <= minor]
    manifests = [*(each for row in rows for each in row.objects), *map(pod_of, rows)]
    empty.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(manifests))
    return empty


def pod_of(row: Row) -> dict[str, Any]:
    metadata = {**row.template.get("metadata", {}), "name": f"{row.name}-worker-0"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": row.template["spec"]}


@pytest.mark.parametrize("file", [row_of(file) for file in FILES])
def test_a_pod_comes_out_as_everywhere(pods: Cluster, file: Path) -> None:
    row = read(file)
    name = f"{row.name}-worker-0"
    if row.refused:
        until(lambda: row.refused in said(pods, name), PATIENCE)
        assert pods.get("pod", name)["status"]["phase"] == "Pending"
        return
    pod = until(lambda: ended(pods, name), PATIENCE)
    assert (pod["status"]["phase"], pod["status"].get("reason", "")) == (row.phase, row.reason)
    for container in row.containers:
        row.compare(container, seen(pods, pod, container))


def said(cluster: Cluster, pod: str) -> str:
    """Of a pod that does not start: its events and statuses."""
    events = cluster.get("events", f"--field-selector=involvedObject.name={pod}")["items"]
    return "\n".join([*(event["message"] for event in events), str(cluster.get("pod", pod)["status"])])


def ended(cluster: Cluster, pod: str) -> Any:
    found = cluster.get("pod", pod)
    return found if found["status"]["phase"] in ("Succeeded", "Failed") else None


def seen(cluster: Cluster, pod: Any, container: str) -> Container:
    statuses = (*pod["status"].get("initContainerStatuses", ()), *pod["status"]["containerStatuses"])
    (status,) = (each for each in statuses if each["name"] == container)
    end = status["state"].get("terminated", {})
    return Container(
        code=end.get("exitCode"),
        restarts=status["restartCount"],
        reason=end.get("reason"),
        log=cluster.kubectl("logs", pod["metadata"]["name"], "-c", container),
        message=end.get("message", ""),
    )
