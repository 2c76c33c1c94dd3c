"""`tfyard exec`: in tasks of a job on the real API server, and of a run on this machine."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.cli.running import Result, tfyard, without
from tests.kubelet.plain_containers import Node, node
from tests.remote.log_job import LogJob, ended, running
from tfyard.kubelet.remote_command import read_descriptor
from tfyard.testing import ControlPlane

WAIT = "import time\ntime.sleep(600)"


class Terminal:
    """Runs tfyard as a user does."""

    def __init__(self, box: Node) -> None:
        self.environ = {"KUBECONFIG": str(box.plane.kubeconfig)}
        self._namespace, self._folder = box.namespace, box.containers.folder

    async def __call__(self, command: str, *words: str, stdin: bytes = b"") -> Result:
        args = (command, "-n", self._namespace, *words)
        return await asyncio.to_thread(tfyard, *args, cwd=self._folder, stdin=stdin, **self.environ)

    def line(self, command: str, *words: str) -> list[str]:
        return [sys.executable, "-m", "tfyard", command, "-n", self._namespace, *words]


async def started(box: Node, workers: int = 2) -> LogJob:
    """All of them but the last run."""
    job = LogJob(box)
    await job.create(workers)
    for index in range(workers):
        await job.create_pod(index)
        await job.start(index, WAIT)
        await job.set_pod(index, running() if index < workers - 1 else ended(1))
    return job


@pytest.mark.cluster
async def test_a_command_in_a_task_has_its_streams_and_gives_its_code(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await started(box)
        run = Terminal(box)
        done = await run(
            "exec", "first", "worker-0", "--", "sh", "-c", "cat; echo bad >&2; exit 3", stdin=b"in"
        )
        assert (done.code, done.out, done.err) == (3, "in", "bad\n")
        dashes = await run("exec", "first", "worker-0", "--", "printf", "%s,", "--all", "-c", "--", "x")
        assert dashes.out == "--all,-c,--,x,"
        over = await run("exec", "first", "worker-1", "--", "true")
        assert (over.code, over.err) == (1, "tfyard: worker-1 is not running: it ended with code 1\n")
        assert "did you mean worker-0?" in (await run("exec", "first", "wroker-0", "--", "true")).err
        assert (
            "worker means 2 tasks: name one of worker-0, worker-1"
            in (await run("exec", "first", "worker", "--", "true")).err
        )
        many = await run("exec", "first", "worker-0", "-c", "istio", "--", "true")
        assert (many.code, many.err) == (2, "tfyard: worker-0 has no container istio; it has tensorflow\n")
        missing = await run("exec", "first", "worker-0")
        assert (missing.code, "tfyard exec first worker-0 -- COMMAND" in missing.err) == (2, True)
        wrong = await run("exec", "first", "worker-0", "--", "no-such-program")
        assert (wrong.code, "no-such-program" in wrong.err) == (1, True)


@pytest.mark.cluster
async def test_a_command_in_all_tasks_has_the_task_before_each_line(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    script = "echo one; echo two; printf 'no end' >&2; exit 4"
    async with node(control_plane, namespace, tmp_path) as box:
        await started(box, 3)
        run = Terminal(box)
        done = await run("exec", "--all", "first", "worker", "--", "sh", "-c", script)
        assert done.code == 4
        assert sorted(done.out.splitlines()) == [
            f"worker-{i} │ {word}" for i in (0, 1) for word in ("one", "two")
        ]
        said = done.err.splitlines()
        assert said[0] == "tfyard: worker-2 is not running: it ended with code 1"
        assert sorted(said[1:]) == sorted(
            f"worker-{i} {text}" for i in (0, 1) for text in ("│ no end", "── exit code 4")
        )
        refused = await run("exec", "--all", "-i", "first", "--", "true")
        assert (refused.code, "leave out -i and -t" in refused.err) == (2, True)
        program = [
            sys.executable,
            "-c",
            without("aiohttp"),
            *run.line("exec", "first", "worker-0", "--", "true")[3:],
        ]
        env = {**os.environ, **run.environ}
        bare = await asyncio.to_thread(subprocess.run, program, env=env, capture_output=True, text=True)
        assert bare.stderr == 'tfyard: tfyard exec needs aiohttp: pip install "tfyard[kubernetes]"\n'


SIZES_AND_A_KEY = """
stty raw
for size in '33 101' '40 90'; do until stty size | grep "$size"; do sleep .05; done; done
head -c 1 | od -An -tx1
exit 7
"""


async def said(terminal: int, text: bytes) -> None:
    found = b""
    while text not in found:
        found += await read_descriptor(terminal)


@pytest.mark.cluster
async def test_a_terminal_has_its_size_its_keys_and_is_as_before_afterwards(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with node(control_plane, namespace, tmp_path) as box:
        await started(box)
        run = Terminal(box)
        master, slave = pty.openpty()
        os.set_blocking(master, False)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
        before = termios.tcgetattr(slave)
        process = await asyncio.create_subprocess_exec(
            *run.line("exec", "-it", "first", "worker-0", "--", "sh", "-c", SIZES_AND_A_KEY),
            env={**os.environ, **run.environ},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        await said(master, b"33 101")
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 90, 0, 0))
        process.send_signal(signal.SIGWINCH)
        await said(master, b"40 90")
        os.write(master, b"\x03")  # Ctrl-C is the command's, not tfyard's
        await said(master, b" 03")
        assert await process.wait() == 7
        assert termios.tcgetattr(slave) == before
        os.close(slave)
        os.close(master)


JOB = """
name: t
image: a
run: sleep 600
worker: 2
volumes: {out: {claim: results, at: /out}}
"""


@pytest.mark.processes
def test_a_command_in_a_task_of_a_run_sees_what_the_task_sees(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    command = [sys.executable, "-m", "tfyard", "run", "job.yaml", "-q"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            words = (
                "t",
                "worker-1",
                "--local",
                "--",
                "sh",
                "-c",
                "echo $TF_CONFIG; echo hi > /out/said; exit 6",
            )
            end = time.monotonic() + 60
            while (done := tfyard("exec", *words, cwd=tmp_path)).code != 6:
                assert time.monotonic() < end, done.err
                time.sleep(0.1)
            assert '"index": 1' in done.out or '"index":1' in done.out
            assert (tmp_path / ".tfyard/volumes/results/said").read_text() == "hi\n"
            every = tfyard("exec", "--all", "t", "--local", "--", "pwd", cwd=tmp_path)
            assert (every.code, len(every.out.splitlines())) == (0, 2)
            assert tfyard("exec", "t", "--local", "--", "true", cwd=tmp_path).code == 2
            missing = tfyard("exec", "t", "worker-0", "--local", "--", "no-such-program", cwd=tmp_path)
            assert (missing.code, "no-such-program" in missing.err) == (127, True)
        finally:
            run.send_signal(signal.SIGINT)
            run.wait()
    over = tfyard("exec", "t", "worker-0", "--local", "--", "true", cwd=tmp_path)
    assert (over.code, "has ended" in over.err) == (1, True)
