"""Jobs that say for how long they may print nothing: their logs are asked for, seldom, and by a permission."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from tests.controller.cluster import Bench, bench, operating, tfjob
from tests.controller.faults import Counting, Mortal, Stage, When, end, operator_with, stage
from tests.controller.log_server import LogServer, logs_of
from tests.controller.test_permissions import apply, installed, namespaces
from tfyard.backends.kubernetes import last_lines
from tfyard.install.settings import NAME
from tfyard.kube import requests
from tfyard.model.names import STALL
from tfyard.planner import Site
from tfyard.testing import ControlPlane, Script, builders, eventually

pytestmark = pytest.mark.cluster

SECONDS = 4
QUARTER = SECONDS / 4
SITE = Site(log_interval=0.5)
"""An operator that looks more often than every 15 s, so that these tests need not wait for it."""


def watched(name: str, stall: str = f"{SECONDS}s", **roles: Any) -> dict[str, Any]:
    manifest = tfjob(name, **(roles or {"Worker": 2}))
    manifest["metadata"]["annotations"] = {STALL: stall}
    return manifest


async def has(scene: Bench, name: str, status: str, reason: str) -> dict[str, Any]:
    """The condition Stalled, once it is so."""

    async def look() -> dict[str, Any]:
        found = (await scene.status(name)).get("conditions", [])
        stalls = [each for each in found if each["type"] == "Stalled"]
        assert [(each["status"], each["reason"]) for each in stalls] == [(status, reason)], found
        return dict(stalls[0])

    return await eventually(look, 60)


async def all_ready(scene: Bench, name: str) -> None:
    """The last of what the start of a job has to store."""
    assert (await scene.status(name))["replicaStatuses"]["Worker"]["ready"] == "2/2"


async def events(scene: Bench, reason: str) -> list[str]:
    """Messages of events with this reason, once there is one."""

    async def look() -> list[str]:
        about = requests.selecting(fields={"reason": reason})
        found = await scene.client.send(requests.get(requests.EVENTS.path(scene.namespace), about))
        assert found["items"]
        return [each["message"] for each in found["items"]]

    return await eventually(look)


@asynccontextmanager
async def printing(logs: LogServer, *pods: str) -> AsyncIterator[None]:
    async def write() -> None:
        number = 0
        while True:
            number += 1
            for pod in pods:
                logs.write(pod, f"step {number}")
            await asyncio.sleep(0.1)

    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        await end(writing)


async def test_one_log_is_asked_for_now_and_then_and_the_job_says_when_it_stalls_and_goes_on(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        bench(control_plane, namespace, Script(), site=SITE) as scene,
        logs_of(control_plane, scene.client, f"{namespace}-node-0") as logs,
    ):
        operator = scene.operator
        assert operator is not None
        writes = operator.metrics.api_writes.labels("update", "tfjobs/status")
        await scene.submit(watched("train"))
        await scene.submit(tfjob("other", Worker=2))
        async with printing(logs, "train-worker-0"):
            await scene.phase("Running", "train")
            await scene.phase("Running", "other")

            async def asked(times: int) -> None:
                assert len(logs.asked) >= times

            await eventually(lambda: asked(1), 60)
            for name in ("train", "other"):
                await eventually(partial(all_ready, scene, name), 60)
            before = writes._value.get()
            await eventually(lambda: asked(3), 60)
            assert writes._value.get() == before, "lines that come are nothing to store"
        logs.write("train-worker-0", "Epoch 3/10")
        stalled = await has(scene, "train", "True", "NoOutput")
        assert stalled["message"].startswith(
            f"worker-0 has written no line for more than {SECONDS}s; the last one,"
        )
        assert stalled["message"].endswith("Z: Epoch 3/10")
        assert (await scene.status("train"))["phase"] == "Stalled"
        assert "tfyard_stalled_jobs 1.0" in operator.metrics.render()
        assert await events(scene, "NoOutput") == [stalled["message"]]
        async with printing(logs, "train-worker-0"):
            await scene.phase("Running", "train")
            await has(scene, "train", "False", "GoesOn")
        assert "tfyard_stalled_jobs 0.0" in operator.metrics.render()
        assert {pod for pod, _, _ in logs.asked} == {"train-worker-0"}, "one log, of jobs that ask for it"
        times = logs.times("train-worker-0")
        assert len(times) <= (times[-1] - times[0]) / QUARTER + 2, (
            "an answer may be late, and the next in time"
        )
        query = {"tailLines": "1", "timestamps": "true", "limitBytes": str(last_lines.LONGEST_ANSWER)}
        assert logs.asked[0][2].items() >= query.items()


async def test_a_log_that_nobody_answers_holds_up_neither_its_job_nor_others(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        bench(control_plane, namespace, Script(), site=SITE) as scene,
        logs_of(control_plane, scene.client, f"{namespace}-node-0") as logs,
    ):
        logs.is_silent = {f"slow-{number}-worker-0" for number in range(40)}
        slow = [f"slow-{number}" for number in range(40)]
        await asyncio.gather(*(scene.submit(watched(name, "1s", Worker=1)) for name in slow))

        async def asked() -> None:
            assert len({pod for pod, _, _ in logs.asked}) >= last_lines.AT_ONCE // 2

        await eventually(asked, 60)
        first = logs.asked[0][0].removesuffix("-worker-0")
        await scene.submit(watched("train", "1s", Worker=1))
        await scene.phase("Running", "train")
        await scene.kubelet.finish(f"{first}-worker-0")
        await scene.phase("Succeeded", first)
        assert "Stalled" not in str(await scene.status(first))
        await has(scene, "train", "True", "NoOutput")


async def test_a_job_that_allows_a_second_is_not_looked_at_every_quarter_of_it(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        bench(control_plane, namespace, Script(), site=replace(SITE, log_interval=4)) as scene,
        logs_of(control_plane, scene.client, f"{namespace}-node-0") as logs,
    ):
        await scene.submit(watched("train", "1s", Worker=1))
        await has(scene, "train", "True", "NoOutput")
        await asyncio.sleep(6)
        times = logs.times("train-worker-0")
        assert 2 <= len(times) <= 3
        assert times[1] - times[0] >= 4


async def test_without_the_permission_the_job_says_so_and_how_it_is_granted(
    control_plane: ControlPlane, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    few, all_of_it = (installed(namespace, namespace, read_logs=granted) for granted in (False, True))
    async with (
        stage(control_plane, namespace, Script()) as scene,
        logs_of(control_plane, scene.client, f"{namespace}-node-0") as logs,
    ):
        await namespaces(scene.client, namespace)
        await apply(control_plane, *few)
        token = await builders.service_account_token(scene.client, namespace, NAME)
        async with (
            control_plane.client(control_plane.token_access(token)) as client,
            operating(client, namespace, site=SITE),
        ):
            await scene.submit(watched("train", "2s"))
            forbidden = await has(scene, "train", "False", "LogsForbidden")
            assert (
                "`tfyard install --read-logs` or the chart's rbac.readLogs=true grants"
                in forbidden["message"]
            )
            assert await events(scene, "LogsForbidden") == [forbidden["message"]]
            assert (await scene.status("train"))["phase"] == "Running", "the job itself goes on"
            assert logs.asked == []
            await asyncio.sleep(12)  # more than one look
            said = [each for each in caplog.messages if "cannot read the log" in each]
            assert len(said) == 1, "a line for each change, not for each look"
            await apply(control_plane, *all_of_it)
            await has(scene, "train", "True", "NoOutput")


RESTARTS = {"Worker": {"replicas": 2, "restartPolicy": "Never"}, "PS": 1}
ALL = ("train-worker-0", "train-worker-1", "train-ps-0")


async def stall_once(plane: ControlPlane, number: int, when: When) -> None:
    """The first start of a job hangs, and an operator dies at one of the writes that follow from it."""
    async with plane.client() as client:
        namespace = await builders.create_namespace(client, "stalled")
    async with (
        stage(plane, namespace, Script()) as scene,
        logs_of(plane, scene.client, f"{namespace}-node-0") as logs,
    ):
        async with operator_with(Counting(plane.admin), namespace, site=SITE):
            manifest = watched("train", "3s, then restart", **RESTARTS)
            manifest["spec"]["runPolicy"] = {"backoffLimit": 1}
            await scene.submit(manifest)
            await scene.pods({*ALL})
            await scene.phase("Running")
        mortal = Mortal(plane.admin, number, when)
        async with operator_with(mortal, namespace, site=SITE):
            await asyncio.wait_for(mortal.dead.wait(), 60)
        await print_and_finish(plane, scene, logs)


async def print_and_finish(plane: ControlPlane, scene: Stage, logs: LogServer) -> None:
    async with operator_with(Counting(plane.admin), scene.namespace, site=SITE):
        await scene.seen({(pod, attempt) for pod in ALL for attempt in (0, 1)})
        async with printing(logs, "train-worker-0"):
            await scene.phase("Running")
            await asyncio.sleep(4)  # longer than the job may be silent
            await scene.kubelet.finish("train-worker-0")
            status = await scene.phase("Succeeded")
    assert status["restarts"] == 1
    assert [(each["task"], each["reason"]) for each in status["endings"]] == [("worker-0", "Stalled")]
    await scene.seen({(pod, attempt) for pod in ALL for attempt in (0, 1)})
    assert scene.chronicle.twice == []


async def test_a_stall_is_one_restart_of_all_whenever_the_operator_dies(control_plane: ControlPlane) -> None:
    whens: tuple[When, ...] = ("before", "after")
    await asyncio.gather(*(stall_once(control_plane, number, when) for number in (1, 2, 4) for when in whens))
