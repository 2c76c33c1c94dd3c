"""Probes end when they are told to."""

import asyncio
from pathlib import Path

from tfyard.model import Manifest
from tfyard.node import probes
from tfyard.node.engine import ContainerProcess, Engine
from tfyard.node.processes import ContainerCommand


class JustInTime(probes.Target):
    """Whose answer comes in the very moment in which the probing is cancelled."""

    probing: "asyncio.Task[None]"

    async def _get(self, request: Manifest) -> str:  # noqa: ARG002
        asyncio.get_running_loop().call_soon(self.probing.cancel)
        return ""


async def test_probing_ends_also_if_an_answer_comes_in_the_same_moment(tmp_path: Path) -> None:
    """`asyncio.wait_for` before Python 3.12 returns the answer and forgets the cancellation; a pod whose probes go
    on for ever is never deleted."""

    async def ignore(*_: object) -> None: ...

    process = ContainerProcess("main", ContainerCommand(argv=["true"], env={}, cwd="/"))
    target = JustInTime(Engine(tmp_path), process, {}, "127.0.0.1")
    probe = {"httpGet": {"port": 80}, "periodSeconds": 60}
    target.probing = asyncio.create_task(probes.repeat(probe, target, ignore))
    await asyncio.wait([target.probing], timeout=5)
    assert target.probing.cancelled()
