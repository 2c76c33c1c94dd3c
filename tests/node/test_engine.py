"""Processes of containers, without a cluster around them."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tfyard.node.engine import Engine
from tfyard.node.processes import ContainerCommand

pytestmark = pytest.mark.processes


def shell(line: str) -> ContainerCommand:
    return ContainerCommand(argv=["/bin/sh", "-c", line], env=dict(os.environ), cwd="/")


@pytest.mark.long
async def test_containers_can_be_started_after_the_supervisor_was_killed(tmp_path: Path) -> None:
    async with Engine(tmp_path, renews=True) as engine:
        first = await engine.start("first", shell("sleep 600"), tmp_path / "first.log")
        os.kill(engine._processes._supervisor.process.pid, signal.SIGKILL)
        assert (await asyncio.wait_for(first.ended, 30)).code == 137
        before = engine.has_namespaces
        starting = asyncio.create_task(engine.start("second", shell("echo again"), tmp_path / "second.log"))
        while not starting.done():
            assert engine.has_namespaces == before  # whoever prepares a container meanwhile relies on it
            await asyncio.sleep(0.001)
        second = await starting
        assert (await asyncio.wait_for(second.ended, 30)).code == 0
    assert (tmp_path / "second.log").read_text() == "again\n"


async def test_what_runs_beside_a_container_ends_with_it(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        main = await engine.start("main", shell("sleep 600"), tmp_path / "main.log")
        attached = await engine.exec(main, ["/bin/sleep", "600"], stdin=True, tty=False)
        engine.signal(main, signal.SIGKILL)
        assert await asyncio.wait_for(attached.wait(), 30) == 137
        for end in filter(None, (attached.stdin, attached.stdout, attached.stderr)):
            os.close(end)


async def test_a_command_beside_a_container_is_killed_at_its_timeout(tmp_path: Path) -> None:
    async with Engine(tmp_path) as engine:
        main = await engine.start("main", shell("sleep 600"), tmp_path / "main.log")
        assert await engine.run_beside(main, ["/bin/sh", "-c", "echo ill; exit 3"]) == (3, "ill")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await engine.run_beside(main, ["/bin/sleep", "600"])
        while main.beside:
            await asyncio.sleep(0.02)
    assert [*tmp_path.glob("beside-*")] == []
