"""Loops that would hurt a cluster: tasks that fail at once, again and again."""

import time

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, Stage, operator_with, stage
from tfyard.model.backoff import Backoff
from tfyard.planner import Site
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

QUICK = Site(backoff=Backoff(first=2.0, longest=60.0))


async def made(scene: Stage, attempt: int) -> float:
    """When the pod of this attempt was there."""

    async def look() -> None:
        assert ("train-worker-0", attempt) in scene.chronicle.attempts

    await eventually(look)
    return time.monotonic()


async def test_a_crash_loop_waits_longer_each_time_though_the_operator_is_replaced(
    control_plane: ControlPlane, namespace: str
) -> None:
    crash = Script(run_for=0.1, exit_codes=(137,))
    async with stage(control_plane, namespace, crash) as scene:
        async with operator_with(Counting(control_plane.admin), namespace, site=QUICK):
            await scene.submit(tfjob(Worker={"restartPolicy": "ExitCode"}))
            first, second = await made(scene, 0), await made(scene, 1)
            third = await made(scene, 2)

            async def waits() -> None:
                message = (await scene.status())["conditions"][-1]["message"]
                assert message.endswith("worker-0 waits 4 s before attempt 4: exited with code 137")

            await eventually(waits)
        async with operator_with(Counting(control_plane.admin), namespace, site=QUICK):
            fourth = await made(scene, 3)
    assert second - first < 2
    assert third - second >= 2
    assert fourth - third >= 4
    assert len(scene.chronicle.pods) == 4
