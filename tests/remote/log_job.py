"""A TFJob whose pods are plain processes: tests write its statuses themselves, as operator and kubelet would."""

from typing import Any

from tests.cli.test_get import tfjob
from tests.kubelet.plain_containers import Node
from tfyard.kube import Patch, requests
from tfyard.kube.requests import TFJOBS
from tfyard.model.names import ATTEMPT, JOB_NAME, REPLICA_INDEX, REPLICA_TYPE
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.testing import builders

AT = "2024-11-16T03:00:00Z"
COUNT = """
import os, time
n = 0
while not os.path.exists('go'):
    print('line', n, flush=True); n += 1; time.sleep(.01)
print('last')
"""


class LogJob:
    def __init__(self, box: Node) -> None:
        self._box, self._client, self._namespace = box, box.client, box.namespace
        self._uid = ""

    async def create(self, workers: int = 2) -> StoredTFJob:
        job = tfjob("first")
        job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = workers
        made = await self._client.send(requests.create(TFJOBS.path(self._namespace), job))
        self._uid = made["metadata"]["uid"]
        return StoredTFJob(TFJOBS, made)

    async def create_pod(self, index: int, attempt: int = 0, **spec: Any) -> None:
        labels = {JOB_NAME: "first", REPLICA_TYPE: "worker", REPLICA_INDEX: str(index)}
        pod = builders.pod(f"first-worker-{index}", labels, nodeName=self._box.name, **spec)
        pod["metadata"]["annotations"] = {ATTEMPT: str(attempt)}
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "first", "uid": self._uid}
        pod["metadata"]["ownerReferences"] = [owner]
        await self._client.send(requests.create(requests.PODS.path(self._namespace), pod))

    async def start(self, index: int, program: str) -> Any:
        return await self._box.containers.run(f"first-worker-{index}", program)

    async def delete_pod(self, index: int) -> None:
        path = requests.PODS.path(self._namespace, f"first-worker-{index}")
        await self._client.send(requests.delete(path, grace=0))

    async def set_pod(self, index: int, state: dict[str, Any], restarts: int = 0, **more: Any) -> None:
        program = {
            "name": "tensorflow",
            "image": "i",
            "imageID": "",
            "ready": True,
            "restartCount": restarts,
            "state": state,
            **more,
        }
        await self.patch_pod(index, phase="Running", containerStatuses=[program])

    async def patch_pod(self, index: int, **status: Any) -> None:
        path = requests.PODS.path(self._namespace, f"first-worker-{index}", "status")
        await self._client.send(requests.patch(path, {"status": status}, Patch.MERGE))

    async def set_status(self, **status: Any) -> None:
        path = f"{TFJOBS.path(self._namespace, 'first')}/status"
        await self._client.send(requests.patch(path, {"status": status}))


def running() -> dict[str, Any]:
    return {"running": {"startedAt": AT}}


def ended(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    end = {"exitCode": code, "reason": reason, "startedAt": AT, "finishedAt": AT, "message": message}
    return {"terminated": end}


def failed(task: str, code: int) -> dict[str, Any]:
    times = {"lastUpdateTime": AT, "lastTransitionTime": AT}
    condition = {"type": "Failed", "status": "True", "reason": "TFJobFailed", "message": "boom", **times}
    failure = {"cause": "TaskFailed", "task": task, "exitCode": code, "message": f"{task} failed"}
    return {"phase": "Failed", "conditions": [condition], "failure": failure}
