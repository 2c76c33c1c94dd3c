"""`tfyard why` of jobs whose pods run: it reads the logs of real processes through the API server."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.kubelet.plain_containers import Node, node
from tests.remote.asking import told
from tests.remote.log_job import AT, LogJob, ended, running
from tfyard.kube import Resource, requests
from tfyard.model.names import JOB_NAME
from tfyard.overview.why import Answer
from tfyard.testing import ControlPlane, eventually

pytestmark = pytest.mark.cluster

POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices")
CONNECT = """
import socket, time
while True:
    try:
        socket.create_connection(('first-worker-1', 2222), 1)
    except OSError as problem:
        print('first-worker-1:2222:', problem)
    time.sleep(0.05)
"""
SLEEP = "import time\nprint('Step: 9, loss: 0.5')\ntime.sleep(600)"
NAN = "import time\nprint('Step: 10, loss:', float('inf') - float('inf'))\ntime.sleep(600)"
CRASH = "def load():\n    return {}['size']\nload()"
CREATED = {
    "type": "Created",
    "status": "True",
    "reason": "TFJobCreated",
    "message": "TFJob first is created.",
    "lastUpdateTime": AT,
    "lastTransitionTime": AT,
}


class Programs:
    """A job of two workers that run these programs."""

    def __init__(self, plane: ControlPlane, box: Node) -> None:
        self._plane, self._box, self._job = plane, box, LogJob(box)

    async def start(self, *programs: str) -> None:
        await self._job.create(len(programs))
        await self._job.set_status(conditions=[CREATED])
        for index, program in enumerate(programs):
            await self._job.create_pod(index)
            await self._job.start(index, program)
            await self._job.set_pod(index, running())
            await eventually(partial(self._has_printed, index))

    async def _has_printed(self, index: int) -> None:
        assert self._box.containers.log(f"first-worker-{index}").stat().st_size

    async def end(self, index: int) -> None:
        """Its kubelet does not know its last words, as under terminationMessagePolicy File."""
        code = await self._box.containers.runs[f"first-worker-{index}"][-1].wait()
        await self._job.set_pod(index, ended(code))

    async def why(self, kind: str, **later: float) -> Answer:
        return await told(self._plane.admin, self._box.namespace, "first", kind, timedelta(**later))

    async def create(self, resource: Resource, name: str, **fields: Any) -> None:
        path = resource.path(self._box.namespace)
        labels = fields.pop("labels", {})
        await self._box.client.send(
            requests.create(path, {"metadata": {"name": name, "labels": labels}, **fields})
        )


async def test_a_peer_that_is_not_reached_and_what_is_between(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        job = Programs(control_plane, box)
        await job.start(CONNECT, SLEEP)
        found = await job.why("peers")
        assert found.sentence == "worker-0 cannot reach worker-1"
        assert found.causes[0].evidence[0].text.startswith("first-worker-1:2222: ")
        target = {"kind": "Pod", "name": "first-worker-0", "namespace": namespace}
        endpoint = {"addresses": ["10.0.0.1"], "targetRef": target}
        of_service = {"kubernetes.io/service-name": "first"}
        await job.create(SLICES, "first", addressType="IPv4", endpoints=[endpoint], labels=of_service)
        assert "worker-1 is not among the endpoints of its Service" in (await job.why("peers")).sentence
        chosen = {"podSelector": {"matchLabels": {JOB_NAME: "first"}}}
        await job.create(POLICIES, "deny", spec=chosen)
        found = await job.why("peers")
        assert "NetworkPolicy deny selects these pods" in found.sentence
        assert found.causes[0].fix == f"kubectl -n {namespace} describe networkpolicy deny"


async def test_a_loss_that_is_not_a_number_silence_and_a_crash_without_last_words(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        job = Programs(control_plane, box)
        await job.start(SLEEP, SLEEP)
        found = await job.why("no-progress", minutes=20)
        assert found.sentence.startswith("worker-0 and worker-1 printed nothing for ")
        await box.containers.run("first-worker-1", NAN)
        found = await job.why("nan-loss")
        assert found.sentence == "loss of worker-1 is not a number, and the training goes on"
        await box.containers.run("first-worker-0", CRASH)
        await job.end(0)
        found = await job.why("program-error")
    assert "worker-0 failed with KeyError: 'size'" in found.sentence
