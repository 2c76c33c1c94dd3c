"""What a job says of pods that wait and of tasks that crash, with a real scheduler and a scripted kubelet."""

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.controller.cluster import Bench, bench, tfjob
from tests.controller.test_writes import measured, writes
from tfyard.kube import requests
from tfyard.planner import waiting
from tfyard.testing import ControlPlane, Script, eventually
from tfyard.testing.script import Pod

pytestmark = pytest.mark.cluster

MOUNT = 'MountVolume.SetUp failed for volume "data" : configmap "words" not found'
SCRIPTS = {
    "pull": Script(waiting="ImagePullBackOff"),
    "config": Script(waiting="CreateContainerConfigError"),
    "mount": Script(waiting="ContainerCreating"),
}
CRASH = Script(run_for=0.1, exit_codes=(3,), restart_after=0.7)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 2.0)


def script(pod: Pod) -> Script:
    return SCRIPTS[pod.metadata.name.partition("-")[0]]


async def waits(yard: Bench, name: str) -> tuple[str, str]:
    """Once the job waits: the reason and the message."""
    status = await yard.phase("Waiting", name)
    (condition,) = (each for each in status["conditions"] if each["type"] == "Waiting")
    assert condition["status"] == "True"
    return condition["reason"], condition["message"]


async def fail_to_mount(yard: Bench, pod: str) -> None:
    """As a kubelet says it: in an event."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    event = {
        "metadata": {"name": f"{pod}.1", "namespace": yard.namespace},
        "involvedObject": {"kind": "Pod", "namespace": yard.namespace, "name": pod},
        "type": "Warning",
        "reason": "FailedMount",
        "message": MOUNT,
        "firstTimestamp": now,
        "lastTimestamp": now,
    }
    path = f"/api/v1/namespaces/{yard.namespace}/events"
    await yard.client.send(requests.create(path, event))


@pytest.mark.long
async def test_a_job_says_what_its_pods_wait_for(controllers: ControlPlane, namespace: str) -> None:
    greedy: dict[str, Any] = tfjob("room", Worker=1)
    (container,) = greedy["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {"example.com/tpu": 4}}
    async with bench(controllers, namespace, script, schedules=True) as yard:
        for job in (greedy, *(tfjob(name, Worker=1) for name in SCRIPTS)):
            await yard.submit(job)

        async def is_set_up() -> None:
            path = requests.PODS.path(namespace, "mount-worker-0")
            assert "startTime" in (await yard.client.send(requests.get(path)))["status"]

        await eventually(is_set_up)
        await fail_to_mount(yard, "mount-worker-0")
        assert await waits(yard, "pull") == ("ImagePull", "worker-0: scripted: ImagePullBackOff")
        assert await waits(yard, "config") == ("Config", "worker-0: scripted: CreateContainerConfigError")
        assert await waits(yard, "mount") == ("Mount", f"worker-0: {MOUNT}")
        reason, message = await waits(yard, "room")
    assert reason == "Unschedulable"
    assert message.startswith("worker-0: 0/1 nodes are available: 1 Insufficient example.com/tpu.")


async def test_a_job_whose_task_crashes_again_and_again_does_not_run_and_is_not_written_at_each_crash(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with measured(control_plane, namespace, CRASH) as (yard, operator):
        await yard.submit(tfjob(Worker={"replicas": 3, "restartPolicy": "OnFailure"}))
        status = await yard.phase("Waiting")
        before, crashes = writes(operator), status["restarts"]
        await asyncio.sleep(3)
        assert (writes(operator) - before).total() <= 1, "of the last ten seconds"
        told = await asyncio.to_thread(control_plane.kubectl, "-n", namespace, "describe", "tfjob", "train")
        pods = (await yard.client.send(requests.get(requests.PODS.path(namespace))))["items"]
    assert re.search(r"worker-\d: exits with code 3 again and again", told), told
    assert "Exit Code:" in told
    restarts = sum(pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods)
    assert restarts >= crashes + 3
    ending = status["endings"][-1]
    assert (ending["exitCode"], ending["reason"], ending["attempt"]) == (3, "Error", 1)
    assert ending["started"] <= ending["finished"]
