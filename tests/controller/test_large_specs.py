"""Specs of a megabyte do not fill the operator's memory: its limit is 512 Mi, for all tenants together."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from tests.controller.cluster import tfjob
from tests.controller.faults import OperatorProcess, Stage, stage
from tests.controller.test_faults_crowd import looks_in
from tests.controller.test_process import port_of
from tfyard.testing import ControlPlane, Script, eventually

pytestmark = pytest.mark.cluster

MEGABYTE = 1_000_000


@pytest.mark.parametrize(("count", "limit"), [(24, 110), pytest.param(300, 200, marks=pytest.mark.long)])
async def test_suspended_jobs_of_a_megabyte_each_are_not_kept_decoded(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, count: int, limit: int
) -> None:
    async with stage(control_plane, namespace, Script()) as scene:
        await make_large(scene, count)
        process = OperatorProcess(control_plane.kubeconfig, namespace, tmp_path / "log")
        try:
            await eventually(lambda: has_seen(tmp_path / "log", count), 600)
            assert peak_megabytes(process) < limit
        finally:
            process.kill()


async def make_large(scene: Stage, count: int) -> None:
    seats, text = asyncio.Semaphore(4), words(MEGABYTE)

    async def make(number: int) -> None:
        async with seats:
            await scene.submit(large(f"large-{number}", text))

    await asyncio.gather(*(make(number) for number in range(count)))


def large(name: str, text: str) -> dict[str, Any]:
    manifest = tfjob(name, Worker=1)
    manifest["spec"]["runPolicy"] = {"suspend": True}
    template = manifest["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    template["spec"]["containers"][0]["env"] = [{"name": "DATA", "value": text}]
    return manifest


def words(size: int) -> str:
    """Text that compresses like a configuration file, not like one repeated letter."""
    random = Random(1)
    vocabulary = ["".join(random.choices("abcdefghijklmnop", k=random.randint(3, 12))) for _ in range(2000)]
    return " ".join(random.choices(vocabulary, k=size // 6))[:size]


async def has_seen(log: Path, count: int) -> None:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port_of(log)}") as session:
        metrics = await (await session.get("/metrics")).text()
    assert looks_in(metrics) >= count


def peak_megabytes(process: OperatorProcess) -> float:
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
