"""Jobs whose pods have sidecars, and pods that are evicted: only what the training container did counts."""

from typing import Any

import pytest

from tests.controller.cluster import Manifest, bench, tfjob
from tfyard.kube import requests
from tfyard.testing import ControlPlane, Pod, Script, Sidecar, eventually

pytestmark = pytest.mark.cluster

TRAINER = {"name": "tensorflow", "image": "example/train:1"}
PROXY = {"name": "istio-proxy", "image": "example/proxy:1"}
MESHED = {"spec": {"containers": [PROXY, TRAINER]}}
NATIVE = {"spec": {"containers": [TRAINER], "initContainers": [{**PROXY, "restartPolicy": "Always"}]}}
TOO_MUCH = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi".'


def worker(template: Manifest, restart: str = "Never", replicas: int = 1) -> Manifest:
    return {"replicas": replicas, "restartPolicy": restart, "template": template}


async def test_a_native_sidecar_changes_neither_the_end_nor_the_count_of_its_task(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The kubelet ends it by signal when the program has ended, and its restarts are its own affair."""
    sidecar = Sidecar(exit_code=137, restarts=9)

    def script(pod: Pod) -> Script:
        code = 1 if pod.metadata.name.startswith("bad") else 0
        return Script(run_for=0.5, exit_codes=(code,), sidecars={"istio-proxy": sidecar})

    async with bench(control_plane, namespace, script) as yard:
        for name in ("bad", "good"):
            await yard.submit(tfjob(name, policy={"backoffLimit": 3}, Worker=worker(NATIVE, "ExitCode")))
        failure = (await yard.phase("Failed", "bad"))["failure"]
        assert (failure["cause"], failure["exitCode"]) == ("TaskFailed", 1)
        status = await yard.phase("Succeeded", "good")
        assert "restarts" not in status["replicaStatuses"]["Worker"]


@pytest.mark.long
async def test_a_sidecar_that_never_ends_keeps_no_task_running_and_its_pod_stays_for_its_logs(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script(sidecars={"istio-proxy": Sidecar()})) as yard:
        await yard.submit(tfjob("going-on", Chief=worker(MESHED), Worker=worker(MESHED)))
        await yard.submit(tfjob("kept", policy={"cleanPodPolicy": "None"}, Worker=worker(MESHED)))
        await yard.submit(tfjob("swept", policy={"cleanPodPolicy": "All"}, Worker=worker(MESHED)))
        await yard.submit(tfjob("stopped", policy={"cleanPodPolicy": "Running"}, Worker=worker(MESHED)))
        for name in ("going-on", "kept", "swept", "stopped"):
            await yard.phase("Running", name)
            await yard.kubelet.finish(f"{name}-worker-0")
        for name in ("kept", "swept", "stopped"):
            await yard.phase("Succeeded", name, timeout=5)

        async def ended(name: str) -> None:
            pod = await yard.client.send(requests.get(requests.PODS.path(namespace, name)))
            states = {each["name"]: each["state"] for each in pod["status"]["containerStatuses"]}
            assert pod["status"].get("reason") == "DeadlineExceeded", pod["status"]
            assert states["tensorflow"]["terminated"]["exitCode"] == 0
            assert "terminated" in states["istio-proxy"]

        for name in ("going-on", "kept", "stopped"):
            await eventually(lambda name=name: ended(f"{name}-worker-0"))  # type: ignore[misc]
        await yard.pods({"going-on-chief-0", "going-on-worker-0", "kept-worker-0", "stopped-worker-0"})
        status = await yard.status("going-on")
        assert (status["phase"], status["replicaStatuses"]["Worker"]["succeeded"]) == ("Running", 1)


async def test_a_pod_that_went_over_its_own_limits_counts_as_failed(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script()) as yard:
        await yard.submit(tfjob(policy={"backoffLimit": 1}, Worker={"restartPolicy": "OnFailure"}))
        for attempt in range(2):
            await yard.phase("Running")
            await running(yard, attempt)
            await yard.kubelet.evict("train-worker-0", TOO_MUCH, own_fault=True)
        failure = (await yard.phase("Failed"))["failure"]
        assert failure["cause"] == "BackoffLimitExceeded"
        assert failure["message"].endswith(f"(Evicted): {TOO_MUCH}")

        async def told() -> None:
            events = await yard.client.send(requests.get(f"/api/v1/namespaces/{namespace}/events"))
            assert TOO_MUCH in "".join(e["message"] for e in events["items"] if e["reason"] == "Evicted")

        await eventually(told)


async def running(yard: Any, attempt: int) -> None:
    async def look() -> None:
        path = requests.PODS.path(yard.namespace, "train-worker-0")
        pod = await yard.client.send(requests.get(path))
        assert pod["metadata"]["annotations"]["tfyard.dev/attempt"] == str(attempt)
        assert pod["status"]["phase"] == "Running"

    await eventually(look)


@pytest.mark.long
async def test_a_pod_that_its_kubelet_does_not_admit_is_replaced_and_costs_no_retry(
    control_plane: ControlPlane, namespace: str
) -> None:
    def script(pod: Pod) -> Script:
        refusals = {"0": "Evicted", "1": "OutOfcpu"}
        return Script(rejected=refusals.get(pod.metadata.annotations["tfyard.dev/attempt"], ""), run_for=0.2)

    async with bench(control_plane, namespace, script) as yard:
        await yard.submit(tfjob(policy={"backoffLimit": 0}, Worker=1))
        status = await yard.phase("Succeeded")
        assert "restarts" not in status["replicaStatuses"]["Worker"]
