"""The loop on this machine, with what a test wants to take away from it."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tfyard import planner
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local.loop import Loop
from tfyard.local.ports import Ports
from tfyard.model import Job, Role, Status
from tfyard.node.containers import Objects
from tfyard.node.node import Machine
from tfyard.node.volumes import Volumes

pytestmark = pytest.mark.processes


def run(job: Job, folder: Path) -> Status:
    """On a machine that may make no control groups."""
    directory = RunDirectory.make(folder, job, datetime.now(UTC), lambda _text: None)
    machine = Machine(
        directory=directory.path,
        volumes=Volumes(folder / "volumes", {}, Objects()),
        objects=Objects(),
        base_env=os.environ,
    )
    ports = Ports()
    site = planner.Site(services="none", ports=ports.take(job.tasks()))
    status = asyncio.run(Loop(job, site, machine, directory).run())
    ports.release()
    return status


def test_without_control_groups_memory_is_sampled_and_the_end_is_the_same(tmp_path: Path) -> None:
    container = {
        "name": "tensorflow",
        "image": "none",
        "command": [sys.executable, "-c", "import time; x = bytearray(300_000_000); time.sleep(1000)"],
        "resources": {"limits": {"memory": "150Mi"}},
    }
    job = Job(name="j", roles=(Role(name="Worker", template={"spec": {"containers": [container]}}),))
    failure = run(job, tmp_path).failure
    assert failure is not None
    assert failure.exit_code == 137
    assert "OOMKilled" in failure.message
