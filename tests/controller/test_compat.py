"""`--compat kubeflow` on a real apiserver: a Service without an owner, an eviction under Never, the clean-up."""

import pytest

from tests.controller.cluster import bench, tfjob
from tfyard.controller.process import OperatorOptions, _site
from tfyard.kube import requests
from tfyard.model.names import CONTROLLER, JOB_NAME, OPERATOR_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

UPSTREAM = _site(OperatorOptions(compat="kubeflow"))


async def test_a_job_adopts_its_service_fails_with_an_evicted_pod_and_keeps_that_pods_service(
    control_plane: ControlPlane, namespace: str
) -> None:
    labels = {OPERATOR_NAME: CONTROLLER, JOB_NAME: "train", REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
    orphan = {
        "metadata": {"name": "train-worker-0", "labels": labels},
        "spec": {"clusterIP": "None", "selector": labels, "ports": [{"port": 2222}]},
    }
    async with bench(control_plane, namespace, Script(), site=UPSTREAM) as yard:
        found = await yard.client.send(requests.create(requests.SERVICES.path(namespace), orphan))
        job = await yard.submit(tfjob(policy={"cleanPodPolicy": "Running"}, Worker=2))
        status = await yard.phase("Running")
        assert "Blocked" not in {condition["type"] for condition in status["conditions"]}
        path = requests.SERVICES.path(namespace, "train-worker-0")
        adopted = (await yard.client.send(requests.get(path)))["metadata"]
        assert adopted["uid"] == found["metadata"]["uid"]
        assert [owner["uid"] for owner in adopted["ownerReferences"]] == [job["metadata"]["uid"]]
        await yard.kubelet.evict("train-worker-0")
        await yard.phase("Failed")

        async def cleaned() -> None:
            assert await yard.names() == {"train-worker-0"}
            assert await yard.names(requests.SERVICES) == {"train-worker-0"}

        await eventually(cleaned)
