"""Whole lines of two streams in one log."""

import asyncio
import os
import resource
from pathlib import Path

import pytest

from tfyard.node.output import LONGEST, ProcessOutput
from tfyard.node.processes import ContainerCommand, Exit, Processes


class Program:
    """Writes to an output as a process does, which is read after each write."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.output = ProcessOutput(str(self.log))

    def write(self, stream: int, data: bytes) -> None:
        os.write(self.output.theirs[stream - 1], data)
        self.output.read(self.output.streams[stream - 1])

    def end(self) -> bytes:
        for end in self.output.theirs:
            os.close(end)
        self.output.close()
        return self.log.read_bytes()


def test_a_line_is_not_cut_by_the_other_stream(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.write(1, b"mean")
    program.write(2, b"not an error\n")
    assert program.log.read_bytes() == b"not an error\n"
    program.write(1, b" 3.0\nnext")
    assert program.log.read_bytes() == b"not an error\nmean 3.0\n"
    assert program.end() == b"not an error\nmean 3.0\nnext"


def test_what_both_streams_have_not_ended_is_written_at_the_end_as_two_lines(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.write(1, b"out")
    program.write(2, b"err")
    assert program.end() == b"out\nerr"


def test_a_line_that_is_begun_can_be_shown_and_is_told_once(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.write(1, b"done\n")
    assert program.output.is_shown, "there is nothing to tell"
    program.write(1, b"\r1/10 ")
    program.write(1, b"\r2/10 ")
    assert not program.output.is_shown
    assert program.output.unfinished() == b"\r2/10 "
    assert program.output.is_shown
    program.write(1, b"ok\n")
    assert not program.output.is_shown, "that it has ended is told, too"
    assert program.output.unfinished() == b""
    assert program.end() == b"done\n\r1/10 \r2/10 ok\n"


def test_a_progress_bar_that_never_ends_takes_bounded_memory_and_stays_readable(tmp_path: Path) -> None:
    program, state = Program(tmp_path), b"\r" + b"=" * 999
    for _ in range(3 * LONGEST // len(state)):
        program.write(1, state)
    program.write(2, b"a warning\n")
    lines = program.end().split(b"\n")
    assert b"a warning" in lines
    assert all(line.startswith((b"\r", b"=", b"a")) for line in lines if line)


@pytest.mark.processes
async def test_a_log_is_complete_when_its_end_is_reported_although_a_child_holds_the_stream_open(
    tmp_path: Path,
) -> None:
    ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
    line = "setsid sleep 600 & head -c 3000000 /dev/zero | tr '\\0' x; echo; printf last"
    command = ContainerCommand(argv=["/bin/sh", "-c", line], env=dict(os.environ), cwd="/")
    async with Processes(tmp_path / "supervisor.log", lambda _id, exit: ended.set_result(exit)) as processes:
        processes.start("main", command, tmp_path / "log")
        assert (await asyncio.wait_for(ended, 60)).code == 0
        assert (tmp_path / "log").read_bytes() == b"x" * 3_000_000 + b"\nlast"


@pytest.mark.processes
async def test_programs_have_the_limit_of_open_files_that_was_there_before(tmp_path: Path) -> None:
    ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
    command = ContainerCommand(argv=["/bin/sh", "-c", "ulimit -n"], env=dict(os.environ), cwd="/")
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Processes(tmp_path / "supervisor.log", lambda _id, exit: ended.set_result(exit)) as processes:
        processes.start("main", command, tmp_path / "log")
        await asyncio.wait_for(ended, 60)
    assert (tmp_path / "log").read_text() == f"{limit}\n"
