"""Events of jobs whose operator is killed: the end is told once, and nothing twice."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Mortal, Stage, When, operator_with, stage
from tests.controller.test_faults_refusals import pod_posts
from tfyard.kube import Access, Request, requests
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

JOBS = 12


class SilencedAtTheEnd(Mortal):
    """A client that dies right before or right after the event about the end of a job."""

    def __init__(self, access: Access, when: When) -> None:
        super().__init__(access, 0, when)

    async def send(self, request: Request, into: Any = None) -> Any:
        if b"TFJobSucceeded" in (request.body or b"") and request.path.endswith("/events"):
            self._number = len(self.writes) + 1
        return await (super().send(request, into) if into else super().send(request))


async def told(scene: Stage) -> "Counter[tuple[str, str, str]]":
    """(job, reason, message) of all events about jobs."""
    found = await scene.client.send(requests.get(requests.EVENTS.path(scene.namespace)))
    about = [each for each in found["items"] if each["involvedObject"]["kind"] == "TFJob"]
    return Counter((each["involvedObject"]["name"], each["reason"], each["message"]) for each in about)


async def ends(scene: Stage) -> "Counter[str]":
    return Counter(name for name, reason, _ in (await told(scene)).elements() if reason == "TFJobSucceeded")


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_end_of_a_job_is_told_once_though_its_operator_dies_while_it_tells_it(
    control_plane: ControlPlane, namespace: str, when: When
) -> None:
    async with stage(control_plane, namespace, Script(run_for=0.2)) as scene:
        await scene.submit(tfjob(Worker=1))
        first = SilencedAtTheEnd(control_plane.admin, when)
        async with operator_with(first, namespace):
            await asyncio.wait_for(first.dead.wait(), 60)
        assert (await ends(scene))["train"] == (when == "after")
        async with operator_with(Counting(control_plane.admin), namespace) as operator:

            async def is_told() -> None:
                assert (await ends(scene))["train"] == 1

            await eventually(is_told)
            await operator.drain()
            assert (await ends(scene))["train"] == 1


@pytest.mark.long
async def test_operators_that_are_killed_again_and_again_tell_each_end_once_and_no_creation_twice(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace, Script(run_for=0.2)) as scene:
        for number in range(JOBS):
            await scene.submit(tfjob(f"job-{number}", Worker=2))
        for life in range(6, 30, 3):
            client = Mortal(control_plane.admin, life, "before" if life % 2 else "after")
            async with operator_with(client, namespace):
                await asyncio.wait([asyncio.create_task(client.dead.wait())], timeout=20)
        async with operator_with(Counting(control_plane.admin), namespace) as operator:
            for number in range(JOBS):
                await scene.phase("Succeeded", f"job-{number}")

            async def all_told() -> None:
                assert await ends(scene) == {f"job-{number}": 1 for number in range(JOBS)}

            await eventually(all_told)
            await operator.drain()
        assert [each for each, times in (await told(scene)).items() if times > 1] == []
        await all_told()


async def test_a_pod_that_is_created_once_is_told_once_however_often_it_is_tried(
    control_plane: ControlPlane, namespace: str
) -> None:
    """A list that is older than the pod makes the operator try again, and meet its own pod."""
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace) as scene, operator_with(client, namespace) as operator:
        await scene.submit(tfjob(Worker=1))
        await scene.phase("Running")
        for tries in range(2, 6):
            operator.cache.pods.replace([], namespace)
            operator.enqueue_all()

            async def tried(tries: int = tries) -> None:
                assert pod_posts(client) >= tries

            await eventually(tried)
        await operator.drain()
        created = {key: times for key, times in (await told(scene)).items() if "Create" in key[1]}
        assert created == {("train", "SuccessfulCreatePod", "Created pod: train-worker-0"): 1}


async def test_an_operator_that_starts_tells_nothing_of_jobs_that_ended_long_ago(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfyard.controller.reporting.RETELL", 0.0)
    async with stage(control_plane, namespace, Script(run_for=0.2)) as scene:
        async with operator_with(Counting(control_plane.admin), namespace):
            await scene.submit(tfjob(Worker=1))
            await scene.phase("Succeeded")
        client = Counting(control_plane.admin)
        async with operator_with(client, namespace) as operator:
            await operator.synced.wait()
            await asyncio.sleep(2)
            await operator.drain()
        assert client.writes == []
