"""Processes of containers, without a cluster around them."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

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
        process = await engine.exec(main, ["/bin/sleep", "600"], stdin=True, tty=False)
        engine.signal(main, signal.SIGKILL)
        assert await asyncio.wait_for(process.wait(), 30) == 137
        for end in filter(None, (process.stdin, process.stdout, process.stderr)):
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


@pytest.mark.parametrize("has_files", [False, True])
async def test_a_debugger_beside_a_container_finds_its_program_where_it_is(
    tmp_path: Path, has_files: bool
) -> None:
    """`py-spy`, which `tfyard why --stacks` calls, opens the program by the path that /proc says."""
    hosts = tmp_path / "hosts"
    hosts.write_text("10.0.0.1 me\n")
    files = ((str(hosts), "/etc/hosts", False),) if has_files else ()
    async with Engine(tmp_path) as engine:
        if not engine.has_namespaces:
            pytest.skip("namespaces are not allowed here")
        command = replace(shell("echo $$; exec /bin/sleep 600"), files=files)
        main = await engine.start("main", command, tmp_path / "main.log")
        assert await engine.started(main)
        while not (tmp_path / "main.log").read_text().endswith("\n"):
            await asyncio.sleep(0.02)
        pid = int((tmp_path / "main.log").read_text())
        line = f"cat /etc/hosts; readlink -f /bin/sleep; readlink /proc/{pid}/exe"
        code, text = await engine.run_beside(main, ["/bin/sh", "-c", line])
        *seen, expected, found = text.split("\n")
        assert (code, found) == (0, expected)
        assert (seen == ["10.0.0.1 me"]) == has_files
