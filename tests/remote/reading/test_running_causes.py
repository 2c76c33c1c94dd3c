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
from tfyard.kube.requests import TFJOBS
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
BY_ADDRESS = (
    "E0000 00:00:1794803145.7 11 wait_for_ready.cc:1] UNAVAILABLE: failed to connect to all addresses; last error:"
    " UNKNOWN: ipv4:10.0.0.2:2222: Failed to connect to remote host: Connection refused"
)
NCCL = (
    "first-worker-0:1:214 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.2<43221> failed :"
    " Software caused connection abort"
)
STRAGGLERS = """\
I0000 00:00:1794803145.777214 5179 coordination_service.cc:502] Waiting for 1/2 tasks to connect.
I0000 00:00:1794803145.777224 5179 coordination_service.cc:505] Example stragglers:
/job:worker/replica:0/task:1
I0000 00:00:1794803145.777659 5154 service_agent.cc:245] Coordination agent has successfully connected."""
WAITS = "INFO:tensorflow:Waiting for the cluster, timeout = inf"
PROXY = {"name": "istio-proxy", "image": "example/proxyv2:1", "restartPolicy": "Always"}
"""As Istio injects it since 1.27: a sidecar among the init containers."""
DEEP = """
library = "def even(n):\\n    return odd(n - 1) if n else 1 / n\\ndef odd(n):\\n    return even(n - 1)"
exec(compile(library, "/usr/lib/python3.11/site-packages/" + "deep/" * 60 + "__init__.py", "exec"))
[even(depth) for depth in [12]]
"""
"""Its own line is the first of a traceback that is longer than what a kubelet keeps."""
CREATED = {
    "type": "Created",
    "status": "True",
    "reason": "TFJobCreated",
    "message": "TFJob first is created.",
    "lastUpdateTime": AT,
    "lastTransitionTime": AT,
}


def says(text: str) -> str:
    return f"import time\nprint({text!r})\ntime.sleep(600)"


class Programs:
    """A job of two workers that run these programs."""

    def __init__(self, plane: ControlPlane, box: Node) -> None:
        self._plane, self._box, self._job = plane, box, LogJob(box)

    async def start(self, *programs: str, **spec: Any) -> None:
        await self._job.create(len(programs))
        await self._job.set_status(conditions=[CREATED])
        for index, program in enumerate(programs):
            await self._job.create_pod(index, **spec)
            await self._job.start(index, program)
            await self._job.set_pod(index, running())
            await self._job.patch_pod(index, podIP=f"10.0.0.{index + 1}")
            await eventually(partial(self._has_printed, index))

    async def _has_printed(self, index: int) -> None:
        assert self._box.containers.log(f"first-worker-{index}").stat().st_size

    async def end(self, index: int, last_words: int = 0) -> None:
        """`last_words`: so many bytes the kubelet keeps of its log; none under terminationMessagePolicy File."""
        runs = self._box.containers.runs[f"first-worker-{index}"]
        code = await runs[-1].wait()
        log = self._box.containers.log(f"first-worker-{index}", len(runs) - 1).read_text()
        await self._job.set_pod(index, ended(code, message=log[-last_words:] if last_words else ""))

    async def why(self, kind: str, **later: float) -> Answer:
        return await told(self._plane.admin, self._box.namespace, "first", kind, timedelta(**later))

    async def add_evaluator(self) -> None:
        """In the dialect of old TFJobs, TF_CONFIG lists it."""
        path = TFJOBS.path(self._box.namespace, "first")
        workers = (await self._box.client.send(requests.get(path)))["spec"]["tfReplicaSpecs"]["Worker"]
        evaluator = {"tfReplicaSpecs": {"Evaluator": {**workers, "replicas": 1}}}
        await self._box.client.send(requests.patch(path, {"spec": evaluator}))
        await self._job.set_status(cluster={"dialect": "kubeflow"})

    async def inject_proxies(self) -> None:
        proxy = {"name": "istio-proxy", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        for index in range(2):
            await self._job.patch_pod(index, initContainerStatuses=[{**proxy, "state": running()}])

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


async def test_peers_by_address_nccl_and_istio(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        job = Programs(control_plane, box)
        await job.start(says(BY_ADDRESS), SLEEP, initContainers=[PROXY])
        assert (await job.why("peers")).sentence == "worker-0 cannot reach worker-1"
        await box.containers.run("first-worker-0", says(NCCL))
        found = await job.why("nccl")
        assert found.sentence == "worker-0: NCCL cannot connect its GPUs with those of worker-1"
        assert "NCCL_SOCKET_IFNAME" in found.causes[0].fix
        await job.inject_proxies()
        found = await job.why("peers")
    assert found.sentence.startswith("worker-0 cannot reach worker-1: Istio's proxy is between them")
    injected = 'TFJob: `template: {metadata: {annotations: {sidecar.istio.io/inject: "false"}}}`'
    assert found.causes[0].fix == injected


async def test_tasks_that_wait_for_others_to_connect_and_for_an_evaluator(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        job = Programs(control_plane, box)
        await job.start(says(STRAGGLERS), SLEEP)
        found = await job.why("peers", minutes=5)
        assert (found.code, found.sentence) == (3, "worker-0 waits for worker-1 to connect")
        await job.add_evaluator()
        await box.containers.run("first-worker-0", says(WAITS))
        found = await job.why("peers", minutes=5)
    assert "TF_CONFIG lists the evaluator as a member of the cluster, so all wait for it" in found.sentence
    assert found.causes[0].fix == "TFJob: `metadata: {annotations: {tfyard.dev/dialect: tf2}}`"


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
        assert found.sentence == "loss of worker-1 is not a number, and the training continues"
        await box.containers.run("first-worker-0", CRASH)
        await job.end(0)
        found = await job.why("program-error")
    assert "worker-0 failed with KeyError: 'size'" in found.sentence


async def test_the_line_of_the_users_code_is_found_where_the_kubelet_kept_only_the_end_of_a_traceback(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        job = Programs(control_plane, box)
        (tmp_path / "train.py").write_text(DEEP)
        await job.start("import train", SLEEP)
        await job.end(0, last_words=2048)
        found = await job.why("program-error")
    assert found.sentence.startswith("worker-0 failed with ZeroDivisionError: division by zero (")
    assert found.sentence.endswith("train.py:4)")
