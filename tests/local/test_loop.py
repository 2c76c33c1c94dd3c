"""The loop on this machine, with what a test wants to take away from it."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local.loop import Loop
from tfyard.local.machine import machine
from tfyard.local.prepare import prepare
from tfyard.local.settings import Settings
from tfyard.model import Status

pytestmark = pytest.mark.processes


def run(words: dict[str, object], folder: Path) -> Status:
    """On a machine that allows no control groups."""
    (folder / "job.yaml").write_text(formats.to_yaml(words))
    prepared = prepare(Settings(target=str(folder / "job.yaml")))
    directory = RunDirectory.make(folder, prepared.job, datetime.now(UTC), lambda _text: None)
    loop = Loop(
        prepared,
        replace(machine(prepared, directory.path), use_cgroups=False),
        directory,
        lambda _event: None,
    )
    asyncio.run(loop.run({}))
    prepared.ports.release()
    return loop.status


def test_without_control_groups_memory_is_sampled_and_the_end_is_the_same(tmp_path: Path) -> None:
    script = "import time; x = bytearray(300_000_000); time.sleep(1000)"
    words = {"name": "j", "image": "none", "run": [sys.executable, "-c", script], "memory": "150Mi"}
    failure = run({**words, "worker": 1}, tmp_path).failure
    assert failure is not None
    assert failure.exit_code == 137
    assert "OOMKilled" in failure.message
