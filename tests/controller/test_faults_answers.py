"""Answers that come late, conflicts, and a status that another client wrote."""

import asyncio
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Meddled, Stage, operator_with, stage
from tfyard.kube import Request, requests
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

TO_BE_HEARD = 1.0
"""Seconds within which a watch has certainly reported a change."""


async def test_a_pod_that_is_gone_before_the_watch_shows_it_is_created_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace) as scene:
        path = requests.PODS.path(namespace, "train-worker-0")
        taken = []

        async def take_away(request: Request) -> None:
            if request.method == "POST" and request.path.endswith("/pods") and not taken:
                taken.append(request)
                await scene.client.send(requests.delete(path, grace=0))
                await asyncio.sleep(TO_BE_HEARD)

        async with operator_with(Meddled(control_plane.admin, take_away), namespace):
            await scene.submit(tfjob(Worker=1))
            await scene.phase("Running")
            await scene.seen(2)


async def test_a_job_that_is_gone_before_its_status_is_answered_is_forgotten(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace) as scene:
        taken = []

        async def take_away(request: Request) -> None:
            if request.method == "PUT" and not taken:
                taken.append(request)
                await scene.client.send(requests.delete(TFJOBS.path(namespace, "train")))
                await asyncio.sleep(TO_BE_HEARD)

        async with operator_with(Meddled(control_plane.admin, take_away), namespace) as operator:
            await scene.submit(tfjob(Worker=1))

            async def forgotten() -> None:
                assert taken
                assert not operator.queue._busy
                assert not operator.cache.jobs

            await eventually(forgotten)


async def test_a_job_that_was_replaced_before_its_status_is_answered_gives_way_to_its_successor(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace) as scene:
        taken = []

        async def swap(request: Request) -> None:
            if request.method == "PUT" and not taken:
                taken.append(request)
                await scene.client.send(requests.delete(TFJOBS.path(namespace, "train")))
                await scene.submit(tfjob(Evaluator=1, Worker=1))
                await asyncio.sleep(TO_BE_HEARD)

        async with operator_with(Meddled(control_plane.admin, swap), namespace):
            await scene.submit(tfjob(PS=1, Worker={"replicas": 1, "restartPolicy": "Never"}))

            async def is_there() -> None:
                await collect_garbage(scene)
                assert "train-evaluator-0" in await scene.names()

            await eventually(is_there)


async def collect_garbage(scene: Stage) -> None:
    """Delete what belongs to another job than the present one. This control plane has no garbage collector, and a
    job waits until the names of its deleted predecessor are free."""
    uid = (await scene.get())["metadata"]["uid"]
    for resource in (requests.PODS, requests.SERVICES):
        for each in (await scene.client.send(requests.get(resource.path(scene.namespace))))["items"]:
            owners = {owner["uid"] for owner in each["metadata"].get("ownerReferences", ())}
            if owners and uid not in owners:
                path = resource.path(scene.namespace, each["metadata"]["name"])
                await scene.client.send(requests.delete(path, each["metadata"]["uid"], grace=0))


async def test_another_write_between_decision_and_report_is_kept_and_the_job_goes_on(
    control_plane: ControlPlane, namespace: str
) -> None:
    class Overtaken(Counting):
        """Each status write finds that the object has just changed, the first five times."""

        async def send(self, request: Request, into: Any = None) -> Any:
            conflicts = sum(each.method == "PUT" for each in self.sent)
            if request.method == "PUT" and conflicts < 5:
                note = {"metadata": {"annotations": {"note": str(conflicts)}}}
                await scene.patch(note)
            return await (super().send(request, into) if into else super().send(request))

    async with stage(control_plane, namespace, Script(run_for=0.5)) as scene:
        async with operator_with(Overtaken(control_plane.admin), namespace):
            await scene.submit(tfjob(Worker=2, PS=1))
            await scene.phase("Succeeded")
        assert scene.chronicle.twice == []
        assert (await scene.get())["metadata"]["annotations"] == {"note": "4"}


async def events(scene: Stage, reason: str) -> list[str]:
    """What was said for this reason, each as its type and message."""
    found = await scene.client.send(requests.get(f"/api/v1/namespaces/{scene.namespace}/events"))
    return [f"{e['type']} {e['message']}" for e in found["items"] if e["reason"] == reason]


async def told_once(scene: Stage, reason: str) -> list[str]:
    found = await events(scene, reason)
    assert len(found) == 1
    return found


async def test_a_status_that_cannot_be_read_is_reported_once_and_left_alone_until_it_is_corrected(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Acting on half a memory would run finished tasks again."""
    async with stage(control_plane, namespace, Script(run_for=0.3)) as scene:
        client = Counting(control_plane.admin)
        async with operator_with(client, namespace):
            await scene.submit(tfjob("broken", policy={"suspend": True}, Worker=2))
            await scene.phase("Suspended", "broken")
            path = TFJOBS.path(namespace, "broken", "status")
            nonsense = {"tasks": {"Worker": {"finished": "some of them", "attempts": {"first": 1}}}}
            await scene.client.send(requests.patch(path, {"status": nonsense}))
            before = len(client.writes)
            await scene.patch({"spec": {"runPolicy": {"suspend": False}}}, "broken")
            await scene.submit(tfjob(Worker=1))
            await scene.phase("Succeeded")
            await asyncio.sleep(TO_BE_HEARD)
            mine = [write for write in client.writes[before:] if "train" not in write]
            assert [w for w in mine if "/tfjobs/broken" in w] == []
            (told,) = await eventually(lambda: told_once(scene, "StatusUnreadable"))
            assert told.startswith("Warning ")
            assert "status.tasks.Worker.finished: must be indexes such as 0-2,7, not 'some of them'" in told
            assert "status.tasks.Worker.attempts.first: " in told
            assert f"kubectl -n {namespace} edit tfjob broken --subresource=status" in told
            assert not any(record.exc_info for record in caplog.records), "a traceback helps nobody"
            mended = {"tasks": {"Worker": {"finished": "1", "attempts": {"first": None}}}}
            await scene.client.send(requests.patch(path, {"status": mended}))
            await scene.phase("Succeeded", "broken")
        await scene.seen({("train-worker-0", 0), ("broken-worker-0", 0)})
