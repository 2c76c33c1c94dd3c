"""The supervisor and its other end, without a job around them."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tfyard.backends.local.processes import Command, Processes

pytestmark = pytest.mark.processes


async def test_a_start_that_a_killed_supervisor_never_came_to_is_told_as_an_end(tmp_path: Path) -> None:
    ended: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    log = tmp_path / "supervisor.log"
    async with Processes(log, lambda id, exit: ended.put_nowait((id, exit.code))) as processes:
        os.kill(processes._supervisor.pid, signal.SIGSTOP)
        processes.start("one", Command(argv=["true"], env={}, cwd="/"), tmp_path / "one.log")
        os.kill(processes._supervisor.pid, signal.SIGKILL)
        assert await asyncio.wait_for(ended.get(), 30) == ("one", 137)
