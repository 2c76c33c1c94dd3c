"""The operator on a real apiserver, with pods that live by a script."""

import pytest

from tests.controller.cluster import bench, tfjob
from tfyard.kube import requests
from tfyard.testing import ControlPlane, Script

pytestmark = pytest.mark.cluster


async def test_a_job_goes_from_creation_to_success(control_plane: ControlPlane, namespace: str) -> None:
    async with bench(control_plane, namespace, Script(run_for=0.3)) as yard:
        await yard.submit(tfjob(Worker=2, PS=1))
        status = await yard.phase("Succeeded")
        assert [c["type"] for c in status["conditions"]] == ["Created", "Running", "Succeeded"]
        assert await yard.names() == {"train-worker-0", "train-worker-1", "train-ps-0"}
        assert await yard.names(requests.SERVICES) == {"train"}


async def test_a_killed_worker_is_run_again_and_counted(control_plane: ControlPlane, namespace: str) -> None:
    def script(pod: object) -> Script:
        first = pod.metadata.annotations["tfyard.dev/attempt"] == "0"  # type: ignore[attr-defined]
        return Script(run_for=0.2, exit_codes=(137 if first else 0,))

    async with bench(control_plane, namespace, script) as yard:
        await yard.submit(tfjob(Worker={"restartPolicy": "ExitCode"}))
        status = await yard.phase("Succeeded")
        assert status["replicaStatuses"]["Worker"]["restarts"] == 1


async def test_a_failed_job_says_which_task_and_how(control_plane: ControlPlane, namespace: str) -> None:
    async with bench(control_plane, namespace, Script(run_for=0.1, exit_codes=(3,))) as yard:
        await yard.submit(tfjob(Worker=1))
        status = await yard.phase("Failed")
        assert "worker-0 exited with code 3" in status["failure"]["message"]
        assert status["completionTime"]


async def test_a_quiet_job_misses_its_deadline(control_plane: ControlPlane, namespace: str) -> None:
    async with bench(control_plane, namespace, Script()) as yard:
        await yard.submit(tfjob(policy={"activeDeadlineSeconds": 1}, Worker=1))
        status = await yard.phase("Failed")
        assert status["failure"]["cause"] == "DeadlineExceeded"
        await yard.pods(set())


async def test_suspension_takes_the_pods_and_resumption_brings_them_back(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script()) as yard:
        await yard.submit(tfjob(Worker=2))
        await yard.phase("Running")
        await yard.patch({"spec": {"runPolicy": {"suspend": True}}})
        await yard.phase("Suspended")
        await yard.pods(set())
        await yard.patch({"spec": {"runPolicy": {"suspend": False}}})
        await yard.phase("Running")
        await yard.pods({"train-worker-0", "train-worker-1"})


async def test_an_evicted_pod_is_replaced_and_the_job_goes_on(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with bench(control_plane, namespace, Script()) as yard:
        await yard.submit(tfjob(policy={"backoffLimit": 0}, Worker=1))
        await yard.phase("Running")
        await yard.kubelet.evict("train-worker-0")
        await yard.kubelet.finish("train-worker-0")
        status = await yard.phase("Succeeded")
        assert "restarts" not in status["replicaStatuses"]["Worker"]


async def test_a_job_that_cannot_be_read_says_everything_that_is_wrong_once(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Of such things as the server's own rules cannot see."""
    ports = [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]
    container = {"name": "tensorflow", "image": "example/train:1", "ports": ports}
    async with bench(control_plane, namespace, Script()) as yard:
        broken = tfjob(Worker={"replicas": 50_000, "template": {"spec": {"containers": [container]}}})
        await yard.submit(broken)
        status = await yard.phase("Failed")
        assert "is given twice" in status["failure"]["message"]
        assert "TF_CONFIG would have" in status["failure"]["message"]
        version = (await yard.get())["metadata"]["resourceVersion"]
        assert (await yard.get())["metadata"]["resourceVersion"] == version


async def test_a_finished_job_goes_when_its_time_is_over(control_plane: ControlPlane, namespace: str) -> None:
    async with bench(control_plane, namespace, Script(run_for=0.1)) as yard:
        await yard.submit(tfjob(policy={"ttlSecondsAfterFinished": 0}, Worker=1))

        async def gone() -> None:
            found = await yard.client.send(
                requests.get(f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs")
            )
            assert found["items"] == []

        from tfyard.testing import eventually

        await eventually(gone)
