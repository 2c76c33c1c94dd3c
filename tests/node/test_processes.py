"""The supervisor and its other end, without a job around them."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tfyard.node.orphans import is_exiting
from tfyard.node.processes import ContainerCommand, Exit, Processes

pytestmark = pytest.mark.processes


@pytest.mark.long
async def test_a_start_that_a_killed_supervisor_never_made_is_reported_as_an_end(tmp_path: Path) -> None:
    ended: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    log = tmp_path / "supervisor.log"
    async with Processes(log, lambda id, exit: ended.put_nowait((id, exit.code))) as processes:
        os.kill(processes._supervisor.process.pid, signal.SIGSTOP)
        processes.start("one", ContainerCommand(argv=["true"], env={}, cwd="/"), tmp_path / "one.log")
        os.kill(processes._supervisor.process.pid, signal.SIGKILL)
        assert await asyncio.wait_for(ended.get(), 30) == ("one", 137)


async def test_the_use_of_a_stopped_program_is_reported_though_its_shell_did_not_wait_for_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "busy.py").write_text(
        "import time\nkept = bytearray(100 << 20)\nwhile time.process_time() < 0.3: pass\n"
        "print('done', flush=True)\ntime.sleep(600)\n"
    )
    ended: asyncio.Queue[Exit] = asyncio.Queue()
    log = tmp_path / "task.log"
    async with Processes(tmp_path / "supervisor.log", lambda _, exit: ended.put_nowait(exit)) as processes:
        line = f"{sys.executable} busy.py; true"
        command = ContainerCommand(argv=["/bin/sh", "-c", line], env=dict(os.environ), cwd=str(tmp_path))
        processes.start("one", command, log)
        while not log.is_file() or "done" not in log.read_text():
            await asyncio.sleep(0.05)
        processes.signal("one", signal.SIGTERM)
        exit = await asyncio.wait_for(ended.get(), 30)
    assert exit.code == 143
    assert exit.cpu >= 0.25
    assert exit.peak >= 100 << 20


@pytest.mark.parametrize("ends_first", [True, False], ids=["not if it had ended", "if it still ran"])
async def test_an_exit_says_whether_a_signal_came_first(tmp_path: Path, ends_first: bool) -> None:
    """A supervisor that is held up hears of both at once."""
    ended: asyncio.Queue[Exit] = asyncio.Queue()
    async with Processes(tmp_path / "supervisor.log", lambda _, exit: ended.put_nowait(exit)) as processes:
        line = "while ! [ -e go ]; do sleep 0.05; done; exit 3"
        command = ContainerCommand(argv=["/bin/sh", "-c", line], env=dict(os.environ), cwd=str(tmp_path))
        processes.start("one", command, tmp_path / "task.log")
        while "one" not in processes.pids:
            await asyncio.sleep(0.05)
        os.kill(processes._supervisor.process.pid, signal.SIGSTOP)
        if ends_first:
            (tmp_path / "go").touch()
            while not is_exiting(processes.pids["one"]):
                await asyncio.sleep(0.05)
        processes.signal("one", signal.SIGTERM)
        os.kill(processes._supervisor.process.pid, signal.SIGCONT)
        exit = await asyncio.wait_for(ended.get(), 30)
    assert (exit.code, exit.signalled) == ((3, False) if ends_first else (143, True))


async def run(folder: Path, command: ContainerCommand) -> str:
    """What it writes until it ends, which it must do well."""
    ended: asyncio.Queue[Exit] = asyncio.Queue()
    async with Processes(folder / "supervisor.log", lambda _, exit: ended.put_nowait(exit)) as processes:
        if not processes.namespaces:
            pytest.skip("no namespaces here")
        processes.start("one", command, folder / "one.log")
        exit = await asyncio.wait_for(ended.get(), 30)
    output = (folder / "one.log").read_text()
    assert exit.code == 0, output
    return output


async def test_single_files_are_mounted_and_change_in_place_even_where_there_was_none(tmp_path: Path) -> None:
    hosts, message = tmp_path / "hosts", tmp_path / "message"
    hosts.write_text("10.244.0.2 peer\n")
    message.touch()
    line = "cat /etc/hosts; echo bye > /dev/termination-log; echo lost > /dev/null; test -c /dev/null"
    mounts = ((str(hosts), "/etc/hosts", True), (str(message), "/dev/termination-log", False))
    command = ContainerCommand(argv=["/bin/sh", "-c", line], env=dict(os.environ), cwd="/", mounts=mounts)
    assert await run(tmp_path, command) == "10.244.0.2 peer\n"
    assert message.read_text() == "bye\n"
    assert not Path("/dev/termination-log").exists()


async def test_a_process_can_have_a_host_name_of_its_own(tmp_path: Path) -> None:
    line = "import socket; print(socket.gethostname())"
    command = ContainerCommand(argv=[sys.executable, "-c", line], env={}, cwd="/", hostname="worker-0")
    assert await run(tmp_path, command) == "worker-0\n"


async def test_input_and_output_can_be_descriptors_of_the_client(tmp_path: Path) -> None:
    ended: asyncio.Queue[Exit] = asyncio.Queue()
    (reads, stdin), (stdout, writes) = os.pipe(), os.pipe()
    paths = tuple(f"/proc/{os.getpid()}/fd/{each}" for each in (reads, writes, writes))
    async with Processes(tmp_path / "supervisor.log", lambda _, exit: ended.put_nowait(exit)) as processes:
        command = ContainerCommand(argv=["/bin/cat"], env={}, cwd="/", stdio=paths)
        processes.start("one", command, tmp_path / "unused.log")
        await processes.started("one")
        for end in (reads, writes):
            os.close(end)
        os.write(stdin, b"hello")
        os.close(stdin)
        assert (await asyncio.wait_for(ended.get(), 30)).code == 0
    assert os.read(stdout, 100) == b"hello"
    assert os.read(stdout, 100) == b""
    os.close(stdout)


async def test_a_mount_below_a_link_is_found_there_and_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    """`/var/run` is a link to `/run` on most machines, and service account tokens are mounted below it."""
    if not Path("/var/run").is_symlink():
        pytest.skip("/var/run is no link here")
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "token").write_text("secret")
    mounts = ((str(tmp_path / "volume"), "/var/run/tfyard-test/account", True),)
    command = ContainerCommand(
        argv=["/bin/cat", "/var/run/tfyard-test/account/token"], env={}, cwd="/", mounts=mounts
    )
    assert await run(tmp_path, command) == "secret"
    assert not Path("/run/tfyard-test").exists()


async def test_a_volume_inside_another_does_not_keep_what_is_written_beside_it_from_the_disk(
    tmp_path: Path,
) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "inner"
    for each in (outer, inner):
        each.mkdir()
    mounts = ((str(inner), "/work/inner", False), (str(outer), "/work", False))
    line = "echo 1 > /work/model; echo 2 > /work/inner/part"
    command = ContainerCommand(argv=["/bin/sh", "-c", line], env=dict(os.environ), cwd="/", mounts=mounts)
    await run(tmp_path, command)
    assert (outer / "model").read_text() == "1\n"
    assert (inner / "part").read_text() == "2\n"


async def test_a_private_copy_of_a_directory_has_its_rights(tmp_path: Path) -> None:
    """Linux refuses `> /dev/null` in a directory that all may write to, if the device belongs to somebody else."""
    (tmp_path / "message").touch()
    mounts = ((str(tmp_path / "message"), "/dev/termination-log", False),)
    command = ContainerCommand(argv=["/bin/stat", "-c", "%a", "/dev"], env={}, cwd="/", mounts=mounts)
    assert await run(tmp_path, command) == f"{Path('/dev').stat().st_mode & 0o7777:o}\n"
