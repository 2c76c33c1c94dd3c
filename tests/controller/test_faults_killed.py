"""An operator that dies at any write and is started again: nothing twice, nothing forgotten."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import (
    ATTEMPT,
    Counting,
    OperatorProcess,
    Stage,
    When,
    evict,
    live_and_die,
    operator_with,
    stage,
)
from tfyard.kube import NotFound
from tfyard.testing import ControlPlane, Pod, Script, builders, eventually

pytestmark = pytest.mark.cluster

JOB = tfjob(Worker={"replicas": 2, "restartPolicy": "ExitCode"}, PS=1)
JOB["spec"]["successPolicy"] = "AllWorkers"
EVERY_POD = {("train-worker-0", 0), ("train-worker-1", 0), ("train-worker-1", 1), ("train-ps-0", 0)}
WRITES_OF_ITS_LIFE = 24
"""More than the job below takes: the last deaths of a sweep do not happen."""


def second_worker_is_killed_once(pod: Pod) -> Script:
    if "-ps-" in pod.metadata.name:
        return Script()
    first = pod.metadata.name.endswith("-1") and pod.metadata.annotations[ATTEMPT] == "0"
    return Script(run_for=0.1 if first else 0.8, exit_codes=(137 if first else 0,))


async def check(scene: Stage, status: dict[str, object]) -> None:
    worker = status["replicaStatuses"]["Worker"]  # type: ignore[index]
    assert (worker["restarts"], worker["succeeded"]) == (1, 2)
    assert status["tasks"]["Worker"] == {"attempts": {"1": 1}, "finished": "0-1", "retries": 1}  # type: ignore[index]
    await scene.seen(EVERY_POD)
    assert scene.chronicle.twice == []


async def test_operators_that_live_for_one_write_each_bring_a_job_to_its_end_together(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with stage(control_plane, namespace, second_worker_is_killed_once) as scene:
        await scene.submit(JOB)
        done, deaths = asyncio.Event(), 0

        async def succeed() -> dict[str, object]:
            status = await scene.phase("Succeeded", timeout=100)
            done.set()
            return status

        succeeding = asyncio.create_task(succeed())
        while await live_and_die(control_plane.admin, namespace, 1, "after", done):
            deaths += 1
        await check(scene, await succeeding)
        assert deaths >= len(EVERY_POD)


async def run_with_one_death(plane: ControlPlane, number: int, when: When) -> None:
    async with plane.client() as client:
        namespace = await builders.create_namespace(client, "killed")
    async with stage(plane, namespace, second_worker_is_killed_once) as scene:
        await scene.submit(JOB)
        succeeding = asyncio.create_task(scene.phase("Succeeded", timeout=100))
        done = asyncio.Event()
        succeeding.add_done_callback(lambda _: done.set())
        await live_and_die(plane.admin, namespace, number, when, done)
        async with operator_with(Counting(plane.admin), namespace):
            await check(scene, await succeeding)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 6])
async def test_a_death_at_one_of_the_first_writes_is_not_noticed(
    control_plane: ControlPlane, number: int, when: When
) -> None:
    await run_with_one_death(control_plane, number, when)


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_death_at_any_write_is_not_noticed(control_plane: ControlPlane, when: When) -> None:
    for first in range(1, WRITES_OF_ITS_LIFE, 4):
        numbers = range(first, first + 4)
        await asyncio.gather(*(run_with_one_death(control_plane, number, when) for number in numbers))


async def test_the_real_process_killed_again_and_again_brings_a_job_to_its_end(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with stage(control_plane, namespace, second_worker_is_killed_once) as scene:
        await scene.submit(JOB)

        async def seen(count: int) -> None:
            assert len(scene.chronicle.pods) >= count

        for count in (1, len(EVERY_POD)):
            process = OperatorProcess(
                control_plane.kubeconfig, namespace, tmp_path / "log", "--no-leader-elect"
            )
            try:
                await eventually(lambda count=count: seen(count), 60)  # type: ignore[misc]
            finally:
                process.kill()
        async with operator_with(Counting(control_plane.admin), namespace):
            await check(scene, await scene.phase("Succeeded"))


# --- a drain of several nodes, in a job whose tasks start together

TOGETHER = tfjob(Worker={"replicas": 8, "restartPolicy": "Never"})
TOGETHER["metadata"]["annotations"] = {"tfyard.dev/together": "true"}
TOGETHER["spec"] |= {"successPolicy": "AllWorkers", "runPolicy": {"backoffLimit": 0}}
TWO_STARTS = {(f"train-worker-{index}", attempt) for index in range(8) for attempt in (0, 1)}


def second_start_succeeds(pod: Pod) -> Script:
    first = pod.metadata.annotations[ATTEMPT] == "0"
    return Script(stop_after=0.3, stop_exit_code=42) if first else Script(run_for=0.5)


async def all_run(scene: Stage) -> None:
    async def look() -> None:
        roles = (await scene.status()).get("replicaStatuses", {})
        assert roles.get("Worker", {}).get("active") == 8

    await eventually(look, 60)


async def evict_four(scene: Stage) -> None:
    """Some may be gone already, because the operator stops the others at once."""
    for index in (1, 3, 5, 7):
        with suppress(NotFound):
            await evict(scene, f"train-worker-{index}")
        await asyncio.sleep(0.5)


async def check_one_restart(scene: Stage, status: dict[str, object]) -> None:
    assert status.get("restarts", 0) == 0
    assert status["tasks"]["Worker"]["attempts"] == {str(index): 1 for index in range(8)}  # type: ignore[index]
    await scene.seen(TWO_STARTS)
    assert scene.chronicle.twice == []


async def test_four_evictions_in_a_burst_are_one_restart_of_eight_workers_whoever_dies(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Each operator lives for one write from the first eviction on."""
    async with stage(control_plane, namespace, second_start_succeeds) as scene:
        await scene.submit(TOGETHER)
        async with operator_with(Counting(control_plane.admin), namespace):
            await all_run(scene)
        done, deaths = asyncio.Event(), 0
        evicting = asyncio.create_task(evict_four(scene))
        succeeding = asyncio.create_task(scene.phase("Succeeded", timeout=100))
        succeeding.add_done_callback(lambda _: done.set())
        while await live_and_die(control_plane.admin, namespace, 1, "after", done):
            deaths += 1
        await evicting
        await check_one_restart(scene, await succeeding)
        assert deaths >= 4, "its status, deletes and creates, of which those of one pass are sent at once"
