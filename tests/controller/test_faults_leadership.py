"""Several real operators: the leader is killed or stopped, and no action is lost or done twice."""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import OperatorProcess, Stage, stage
from tests.controller.slow_proxy import slow_proxy
from tfyard.kube import NotFound, requests
from tfyard.model.names import LEASE_NAME
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.long]

LAPSED = 8.0
"""Seconds for which a leader is stopped: it may no longer write, and no standby has taken over yet."""


@contextmanager
def operators(
    plane: ControlPlane, namespace: str, folder: Path, count: int
) -> Iterator[list[OperatorProcess]]:
    taken = len(list(folder.iterdir()))
    logs = [folder / f"{taken + number}.log" for number in range(count)]
    made = [OperatorProcess(plane.kubeconfig, namespace, log) for log in logs]
    try:
        yield made
    finally:
        for each in made:
            each.kill()


async def lease(scene: Stage) -> dict[str, Any]:
    path = requests.LEASES.path(scene.namespace, LEASE_NAME)
    try:
        return dict((await scene.client.send(requests.get(path)))["spec"])
    except NotFound:
        return {"holderIdentity": "", "leaseTransitions": -1}


PROMISED = 15.0
"""Maximum seconds without a leader after a leader was killed."""


async def stands_by(log: Path) -> None:
    """Until it watches, too: whoever has just been started has not seen the lease yet."""

    async def look() -> None:
        assert log.exists()
        assert "serving /metrics" in log.read_text()

    await eventually(look)
    await asyncio.sleep(2)


async def taken_over(scene: Stage, times: int) -> str:
    async def look() -> str:
        found = await lease(scene)
        assert found["leaseTransitions"] == times, found
        return str(found["holderIdentity"])

    return await eventually(look, 40)


async def test_a_leader_that_was_stopped_too_long_to_write_goes_on_if_no_standby_took_over(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with stage(control_plane, namespace) as scene:
        with operators(control_plane, namespace, tmp_path, 1) as (alone,):
            for number in range(3):
                name = f"train-{number}"
                await scene.submit(tfjob(name, Worker=1))
                await scene.phase("Running", name)
                alone.stop()
                await scene.kubelet.finish(f"{name}-worker-0")
                await asyncio.sleep(LAPSED)
                alone.resume()
                await scene.phase("Succeeded", name, timeout=15)
        assert (await lease(scene))["leaseTransitions"] == 0


async def test_a_killed_leader_is_followed_by_one_that_does_the_rest(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with stage(control_plane, namespace) as scene:
        with operators(control_plane, namespace, tmp_path, 1) as (first,):
            await taken_over(scene, 0)
            with operators(control_plane, namespace, tmp_path, 1):
                await scene.submit(tfjob(Worker={"replicas": 2, "restartPolicy": "ExitCode"}))
                await scene.phase("Running")
                await stands_by(tmp_path / "1.log")
                first.process.kill()
                gone = time.monotonic()
                await scene.kubelet.finish("train-worker-1", 137)
                await taken_over(scene, 1)
                await eventually(lambda: count(scene, 3))
                assert time.monotonic() - gone < PROMISED, "not only led again: the lost pod is back"
                await scene.phase("Running")
                await scene.kubelet.finish("train-worker-0")
                status = await scene.phase("Succeeded")
        assert status["replicaStatuses"]["Worker"]["restarts"] == 1
        assert scene.chronicle.twice == []


async def count(scene: Stage, pods: int) -> None:
    assert len(scene.chronicle.pods) == pods


async def test_a_stopped_leader_that_wakes_up_finds_everything_done_and_touches_nothing(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with stage(control_plane, namespace, Script(start_after=0.1)) as scene:
        with operators(control_plane, namespace, tmp_path, 1) as (first,):
            before = await taken_over(scene, 0)
            with operators(control_plane, namespace, tmp_path, 1):
                await stands_by(tmp_path / "1.log")
                await scene.submit(tfjob(Worker={"replicas": 20, "restartPolicy": "ExitCode"}))
                await eventually(lambda: any_pod(scene))
                first.stop()
                gone = time.monotonic()
                assert await taken_over(scene, 1) != before
                assert time.monotonic() - gone < PROMISED
                await scene.phase("Running")
                await eventually(lambda: count(scene, 20))
                await scene.kubelet.finish("train-worker-7", 143)
                await eventually(lambda: count(scene, 21))
                first.resume()
                await asyncio.sleep(3)
                await scene.kubelet.finish("train-worker-0")
                status = await scene.phase("Succeeded")
                assert (await lease(scene))["leaseTransitions"] == 1
        assert status["replicaStatuses"]["Worker"]["restarts"] == 1
        assert scene.chronicle.twice == []
        assert len(scene.chronicle.pods) == 21


async def test_a_stopped_leader_that_wakes_up_sends_none_of_the_requests_that_were_waiting(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    jobs, workers = 8, 32
    config, logs = tmp_path / "config", tmp_path / "logs"
    logs.mkdir()

    async def made(pods: int) -> None:
        assert proxy.pods >= pods

    async with (
        stage(control_plane, namespace, Script(start_after=0.1)) as scene,
        slow_proxy(control_plane.admin, config, delay=1.0) as proxy,
    ):
        leader = OperatorProcess(config, namespace, tmp_path / "leader.log")
        try:
            await taken_over(scene, 0)
            with operators(control_plane, namespace, logs, 1):
                await stands_by(logs / "0.log")
                for number in range(jobs):
                    await scene.submit(tfjob(f"train-{number}", Worker=workers))
                await eventually(lambda: made(40))
                leader.stop()
                await taken_over(scene, 1)
                await eventually(lambda: count(scene, jobs * workers), 60)
                arrived = len(proxy.writes)
                leader.resume()
                await asyncio.sleep(5)
                assert proxy.writes[arrived:] == []
        finally:
            leader.kill()
    assert proxy.pods < jobs * workers, "requests were waiting"
    assert scene.chronicle.twice == []


async def any_pod(scene: Stage) -> None:
    assert scene.chronicle.pods


async def test_a_server_that_does_not_answer_does_not_keep_an_operator_from_ending(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    async with stage(control_plane, namespace) as scene:
        with operators(control_plane, namespace, tmp_path, 1) as (alone,):
            await scene.submit(tfjob(Worker=2))
            await scene.phase("Running")
            await stands_by(tmp_path / "0.log")
            control_plane.apiserver.pause()
            alone.process.send_signal(signal.SIGTERM)
            try:
                ended = await asyncio.to_thread(alone.process.wait, 25)
            finally:
                control_plane.apiserver.resume()
            assert ended == 0
