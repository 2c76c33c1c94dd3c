"""The operator on a real apiserver, with pods that live by a script."""

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from tests.controller.cluster import bench, tfjob
from tests.controller.test_writes import writes
from tfyard.controller.config import site
from tfyard.formats import controllerconfig
from tfyard.kube import requests
from tfyard.kube.requests import OLD_TFJOBS
from tfyard.model.names import CONTROLLER, OPERATOR_NAME
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

SEEDS = Path(__file__).parents[1] / "data" / "seeds"
GOLDEN = Path(__file__).parents[1] / "golden"


async def test_a_job_goes_from_creation_to_success(control_plane: ControlPlane, namespace: str) -> None:
    async with bench(control_plane, namespace, Script()) as yard:
        await yard.submit(tfjob(Worker=2, PS=1))
        await yard.phase("Running")
        for name in ("train-ps-0", "train-worker-0", "train-worker-1"):
            await yard.kubelet.finish(name)
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


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (0, "(0 restarts allowed): worker-0 exited with code 7"),
        (1, "(1 restart allowed): worker-0 exited with code 7 after 1 restart"),
    ],
)
async def test_a_job_fails_instead_of_a_restart_that_its_limit_forbids(
    control_plane: ControlPlane, namespace: str, limit: int, told: str
) -> None:
    """The kubelet makes its first restart at once, and waits before the others."""
    crashing = Script(run_for=0.1, exit_codes=(7,), restart_after=300)
    async with bench(control_plane, namespace, crashing) as yard:
        await yard.submit(tfjob(policy={"backoffLimit": limit}, Worker={"restartPolicy": "OnFailure"}))
        status = await yard.phase("Failed")
        assert status["failure"]["message"].endswith(told)
        assert status["replicaStatuses"]["Worker"].get("restarts", 0) == limit


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
    async with bench(control_plane, namespace, Script()) as yard:
        broken = tfjob(Worker=1)  # what the server's rules cannot see: they know nothing of annotations
        broken["metadata"]["annotations"] = {
            "tfyard.dev/dialect": "tf9",
            "tfyard.dev/evaluator-grace": "soon",
        }
        await yard.submit(broken)
        status = await yard.phase("Failed")
        assert "must be one of tf2, kubeflow, tf1" in status["failure"]["message"]
        assert "must be a duration" in status["failure"]["message"]
        assert yard.operator is not None
        before = writes(yard.operator)["update tfjobs/status"]
        await yard.patch({"metadata": {"labels": {"looked": "at"}}})
        await asyncio.sleep(0.5)
        assert writes(yard.operator)["update tfjobs/status"] == before


async def test_a_finished_job_goes_when_its_time_is_over(control_plane: ControlPlane, namespace: str) -> None:
    async with bench(control_plane, namespace, Script(run_for=0.1)) as yard:
        await yard.submit(tfjob(policy={"ttlSecondsAfterFinished": 0}, Worker=1))

        async def gone() -> None:
            found = await yard.client.send(
                requests.get(f"/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs")
            )
            assert found["items"] == []

        await eventually(gone)


async def test_objects_that_a_user_deletes_are_created_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "example/train:1"}]}}
    roles = [{"tfReplicaType": "MASTER", "template": template}]
    roles += [{"tfReplicaType": "WORKER", "replicas": 150, "template": template}]
    job = {
        "apiVersion": "tensorflow.org/v1alpha1",
        "kind": "TfJob",
        "metadata": {"name": "train"},
        "spec": {"replicaSpecs": roles, "tensorboard": {"logDir": "/logs"}},
    }
    ours = ("services,configmaps,deployments.apps", "-l", f"{OPERATOR_NAME}={CONTROLLER}")
    async with bench(control_plane, namespace, Script()) as yard:
        kubectl = partial(control_plane.kubectl, "--namespace", namespace)
        await yard.client.send(requests.create(OLD_TFJOBS.path(namespace), job))

        async def children() -> dict[tuple[str, str], str]:
            """(kind, name) -> uid of everything beside the pods."""
            found = json.loads(await asyncio.to_thread(kubectl, "get", *ours, "-o", "json"))["items"]
            assert len(found) == 4, "a Service, a ConfigMap, TensorBoard and its Service"
            return {(each["kind"], each["metadata"]["name"]): each["metadata"]["uid"] for each in found}

        before = await eventually(children)
        await asyncio.to_thread(kubectl, "delete", *ours)

        async def back() -> None:
            after = await children()
            assert after.keys() == before.keys()
            assert not set(after.values()) & set(before.values())

        await eventually(back)


async def test_the_labs_manifest_goes_from_kubectl_create_to_success(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Seed 001: v1beta1, MASTER, a GPU limit, and the share of its second exercise."""
    text = (SEEDS / "001-module6-ex2-azurefile.yaml").read_text()
    async with bench(control_plane, namespace, Script(run_for=0.2)) as yard:
        kubectl = partial(control_plane.kubectl, "--namespace", namespace)
        await asyncio.to_thread(kubectl, "create", "-f", "-", stdin=text)
        (name,) = await yard.jobs()
        await yard.phase("Succeeded", name)
        table = await asyncio.to_thread(kubectl, "get", "tfjob")
        assert table.splitlines()[0].split() == ["NAME", "STATE", "CHIEF", "WORKERS", "PS", "RESTARTS", "AGE"]
        assert "Succeeded" in table
        told = await asyncio.to_thread(kubectl, "describe", "tfjob", name)
        assert "TFJobSucceeded" in told


async def test_the_first_operators_manifest_gets_its_drivers_and_succeeds(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Seed 004: tensorflow.org/v1alpha1 with the accelerators of its config file."""
    job = (SEEDS / "004-example-tfjob.yaml").read_text()
    config = controllerconfig.load((GOLDEN / "seed_004" / "controller_config_file.yaml").read_text())
    async with bench(control_plane, namespace, Script(run_for=0.2), site=site(config)) as yard:
        kubectl = partial(control_plane.kubectl, "--namespace", namespace)
        await asyncio.to_thread(kubectl, "create", "-f", "-", stdin=job)
        await yard.pods({"example-tfjob-master-0"})
        pod = await yard.client.send(requests.get(requests.PODS.path(namespace, "example-tfjob-master-0")))
        container = pod["spec"]["containers"][0]
        assert {"/usr/lib/nvidia", "/usr/local/nvidia/bin"} <= {
            m["mountPath"] for m in container["volumeMounts"]
        }
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"

        async def done() -> None:
            assert "Succeeded" in await asyncio.to_thread(kubectl, "get", "tfjobs.tensorflow.org")

        await eventually(done)
