"""A job that training-operator started goes on under tfyard: same pods, same Services, same addresses."""

import json
from typing import Any

import pytest

from tests.controller.cluster import Manifest, tfjob
from tests.controller.faults import Counting, Stage, operator_with, stage
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.model import names
from tfyard.testing import ControlPlane, builders, eventually

pytestmark = pytest.mark.cluster
JOB = tfjob(Worker={"replicas": 2, "restartPolicy": "ExitCode"}, PS=1)
TASKS = (("worker", 0), ("worker", 1), ("ps", 0))
BEGAN = "2026-01-01T00:00:00Z"


def condition(kind: str, reason: str) -> Manifest:
    times = {"lastTransitionTime": BEGAN, "lastUpdateTime": BEGAN}
    return {"type": kind, "status": "True", "reason": reason, "message": f"TFJob train {kind}.", **times}


THEIR_STATUS = {
    "conditions": [condition("Created", "TFJobCreated"), condition("Running", "TFJobRunning")],
    "replicaStatuses": {"Worker": {"active": 2}, "PS": {"active": 1}},
    "startTime": BEGAN,
}


def tf_config(namespace: str, role: str, index: int) -> str:
    def address(role: str, index: int) -> str:
        return f"train-{role}-{index}.{namespace}.svc:2222"

    cluster = {"worker": [address("worker", 0), address("worker", 1)], "ps": [address("ps", 0)]}
    return json.dumps({"cluster": cluster, "task": {"type": role, "index": index}, "environment": "cloud"})


async def begin(scene: Stage) -> None:
    """What training-operator leaves behind when it is told to leave TFJobs alone."""
    made = await scene.submit(JOB)
    await scene.client.send(
        requests.replace(TFJOBS.path(scene.namespace, "train", "status"), {**made, "status": THEIR_STATUS})
    )
    for role, index in TASKS:
        await _make(scene, made, role, index)


async def _make(scene: Stage, job: Manifest, role: str, index: int) -> None:
    labels = {
        names.OPERATOR_NAME: names.CONTROLLER,
        names.JOB_NAME: "train",
        names.REPLICA_TYPE: role,
        names.REPLICA_INDEX: str(index),
    }
    reference = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "name": "train",
        "uid": job["metadata"]["uid"],
    }
    owned: dict[str, Any] = {
        "name": f"train-{role}-{index}",
        "labels": labels,
        "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
    }
    pod = builders.pod(owned["name"])
    pod["metadata"] = owned
    pod["spec"]["containers"][0]["env"] = [
        {"name": "TF_CONFIG", "value": tf_config(scene.namespace, role, index)}
    ]
    spec = {"clusterIP": "None", "selector": labels, "ports": [{"name": "tfjob-port", "port": 2222}]}
    await scene.client.send(requests.create(requests.PODS.path(scene.namespace), pod))
    service = {"metadata": owned, "spec": spec}
    await scene.client.send(requests.create(requests.SERVICES.path(scene.namespace), service))


async def replaced(scene: Stage) -> Manifest:
    """The pod of worker 1, once it is our second attempt."""
    found: Manifest = await scene.client.send(
        requests.get(requests.PODS.path(scene.namespace, "train-worker-1"))
    )
    assert found["metadata"].get("annotations", {}).get(names.ATTEMPT) == "1"
    return found


async def test_a_job_that_training_operator_began_keeps_its_pods_and_ends_under_ours(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace) as scene:
        await begin(scene)
        services = {f"train-{role}-{index}" for role, index in TASKS}
        client = Counting(control_plane.admin)
        async with operator_with(client, namespace):
            await scene.kubelet.finish("train-worker-1", 137)
            pod = await eventually(lambda: replaced(scene))
            variables = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
            assert json.loads(variables["TF_CONFIG"]) == json.loads(tf_config(namespace, "worker", 1))
            assert await scene.names(requests.SERVICES) == services
            await scene.phase("Running")
            await scene.kubelet.finish("train-worker-0")
            status = await scene.phase("Succeeded")
        assert status["startTime"] == BEGAN
        made = [write for write in client.writes if write.startswith("POST") and "/events" not in write]
        assert made == [f"POST {requests.PODS.path(namespace)}"], "one replacement, and nothing else"
        await scene.seen(len(TASKS) + 1)
