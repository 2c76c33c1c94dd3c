"""Thousands of finished jobs are read once, and cost nothing afterwards."""

import asyncio
import os
import time
from pathlib import Path

import aiohttp
import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import Counting, OperatorProcess, Stage, operator_with, stage
from tests.controller.prometheus import parse
from tests.controller.test_process import port_of
from tfyard.controller.informers import INTERVAL
from tfyard.controller.operator import Operator
from tfyard.kube import requests
from tfyard.kube.lists import FIRST_PAGE, PAGE
from tfyard.kube.requests import TFJOBS
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

CROWD = 10_000
QUIET = 3.0


@pytest.mark.parametrize("count", [200, pytest.param(CROWD, marks=pytest.mark.long)])
async def test_finished_jobs_that_lie_around_are_looked_at_once_and_not_written(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, count: int
) -> None:
    client = Counting(control_plane.admin)
    async with stage(control_plane, namespace, Script(run_for=0.2)) as scene:
        await make_finished(scene, count)
        async with operator_with(client, namespace) as operator:
            await operator.synced.wait()
            assert len(operator.cache.jobs) == count
            await eventually(lambda: all_seen(operator, count), 60)
            others = 1 + len(operator.resources.children)
            pages = 1 - (FIRST_PAGE - count) // PAGE
            assert client.reads == pages + others, "each page once"
            await asyncio.sleep(QUIET)
            assert client.writes == []
            assert client.reads == pages + others
            assert looks(operator) == count
            await scene.submit(tfjob(Worker=1))
            await scene.phase("Succeeded")
            assert all("old-" not in write for write in client.writes)
        if count == CROWD:
            await measure(control_plane, scene, tmp_path / "log")


def looks(operator: Operator) -> int:
    return looks_in(operator.metrics.render())


def looks_in(metrics: str) -> int:
    samples = parse(metrics)["tfyard_reconcile_seconds"].samples
    (count,) = [n for (name, _), n in samples.items() if name.endswith("_count")]
    return int(count)


async def all_seen(operator: Operator, count: int) -> None:
    assert looks(operator) >= count
    assert len(operator.queue) == 0


async def measure(plane: ControlPlane, scene: Stage, log: Path) -> None:
    """What the real process costs among them; printed, for it says as much about the machine."""
    process = OperatorProcess(plane.kubeconfig, scene.namespace, log)
    try:
        began = time.monotonic()
        await eventually(lambda: has_seen_all(log), 120)
        took, busy = time.monotonic() - began, cpu_seconds(process)
        await asyncio.sleep(20)
        idle = (cpu_seconds(process) - busy) / 20
        print(f"\n{CROWD} finished jobs: all seen after {took:.1f} s, {busy:.1f} s of CPU;", end=" ")
        print(f"then {memory(process):.0f} MB and {idle:.2%} of a core")
    finally:
        process.kill()


async def has_seen_all(log: Path) -> None:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port_of(log)}") as session:
        metrics = await (await session.get("/metrics")).text()
    assert looks_in(metrics) > CROWD


def cpu_seconds(process: OperatorProcess) -> float:
    fields = Path(f"/proc/{process.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process: OperatorProcess) -> float:
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


async def make_finished(scene: Stage, count: int) -> None:
    when = "2026-01-01T00:00:00Z"
    ended = {"type": "Succeeded", "status": "True", "reason": "TFJobSucceeded", "lastTransitionTime": when}
    status = {"conditions": [ended], "completionTime": when, "phase": "Succeeded", "observedGeneration": 1}
    seats = asyncio.Semaphore(32)

    async def make(number: int) -> None:
        async with seats:
            name = f"old-{number}"
            await scene.submit(tfjob(name, Worker=1))
            path = TFJOBS.path(scene.namespace, name, "status")
            await scene.client.send(requests.patch(path, {"status": status}))

    await asyncio.gather(*(make(number) for number in range(count)))


async def test_a_job_that_is_edited_many_times_a_second_is_reconciled_now_and_then(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        stage(control_plane, namespace, Script()) as scene,
        operator_with(Counting(control_plane.admin), namespace) as operator,
    ):
        await scene.submit(tfjob(policy={"suspend": True}, Worker=1))
        await scene.phase("Suspended")
        before, began = looks_in(operator.metrics.render()), time.monotonic()
        for number in range(60):
            await scene.patch({"metadata": {"annotations": {"note": str(number)}}})
        await asyncio.sleep(1)
        seconds = time.monotonic() - began
        assert looks_in(operator.metrics.render()) - before <= seconds / INTERVAL + 2
