"""`tfyard cp` between this machine and a job: both ways, much, interrupted, over connections that are cut."""

import asyncio
import os
import random
import signal
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cluster.clusters import until
from tests.cluster.jobs import Jobs
from tfyard.file_trees import digest
from tfyard.kube import kubeconfig
from tfyard.testing import Relay

pytestmark = pytest.mark.cluster
JOB = """
name: mnist
image: example/train:1
run: sleep 600
worker: 1
volumes: {out: {claim: out, at: /out, size: 2Gi}}
"""
GIGABYTE, PARTS = 1 << 30, 4


@pytest.fixture
def mnist(jobs: Jobs) -> Jobs:
    jobs.submit(JOB)
    jobs.until_phase("mnist", "Running")
    return jobs


def copied(jobs: Jobs, *words: str) -> str:
    done = jobs.tfyard("cp", *words)
    assert done.code == 0, done.err
    return done.err


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_ctrl_c_leaves_no_pod_and_no_half_file(mnist: Jobs, number: signal.Signals) -> None:
    directory, folder = mnist.claim("out"), mnist.folder
    with (directory / "huge").open("wb") as file:
        file.truncate(1 << 40)  # its checksum alone takes hours
    (directory / "small").write_text("small")
    assert copied(mnist, "mnist:/out/small", "here") == "tfyard: here: copied 1 file, 5 B\n"
    with mnist.start("cp", "mnist:/out/huge", "huge", start_new_session=True) as process:
        try:
            until(lambda: [pod["status"]["phase"] for pod in mnist.helpers()] == ["Running"])
        finally:
            process.send_signal(number)
        assert (process.communicate(timeout=60)[1], process.returncode) == ("", 128 + number)
    until(lambda: not mnist.helpers())
    assert not list(folder.glob("huge*"))


@pytest.mark.long
def test_files_go_to_a_claim_and_come_from_a_claim_and_a_task_that_runs(mnist: Jobs) -> None:
    directory, folder = mnist.claim("out"), mnist.folder
    (folder / "data" / "sub folder").mkdir(parents=True)
    (folder / "data" / "sub folder" / "ü").write_text("odd")
    (folder / "data" / "run.sh").write_text("true")
    (folder / "data" / "run.sh").chmod(0o755)
    (folder / "data" / "link").symlink_to("run.sh")
    assert "copied 2 files" in copied(mnist, "data", "mnist:/out/")
    assert (directory / "data" / "sub folder" / "ü").read_text() == "odd"
    assert (directory / "data" / "run.sh").stat().st_mode & 0o111
    assert (directory / "data" / "link").readlink() == Path("run.sh")
    assert "copied 0 files, 0 B; 2 there already" in copied(mnist, "data", "mnist:/out/")
    assert "copied 2 files" in copied(mnist, "mnist:/out/data", "back")
    assert (folder / "back" / "sub folder" / "ü").read_text() == "odd"
    inside = f"/tmp/{mnist.namespace}"
    assert mnist.tfyard("exec", "mnist", "worker-0", "--", "sh", "-c", f"echo in > {inside}").code == 0
    copied(mnist, f"mnist:worker-0:{inside}", "inside")
    assert (folder / "inside").read_text() == "in\n"
    copied(mnist, "inside", f"mnist:worker-0:{inside}-2")
    assert mnist.tfyard("exec", "mnist", "worker-0", "--", "cat", f"{inside}-2").out == "in\n"
    for words, text in (
        (("mnist:/etc/none", "x"), "/etc/none: there is no such file"),
        (("mnist:/out/none", "x"), "/out/none: there is no such file"),
    ):
        done = mnist.tfyard("cp", *words)
        assert (done.code != 0, text in done.err) == (True, True), done.err
    bare = mnist.tfyard_without("aiohttp", "cp", "mnist:/out/data", "x")
    assert bare.stderr == 'tfyard: tfyard cp needs aiohttp: pip install "tfyard[kubernetes]"\n'


CODE = """
name: train
image: example/train:1
code: code
run: sleep 600
worker: 1
"""


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 1 << 20], ids=["in a ConfigMap", "on a claim"])
def test_the_code_of_a_job_comes_back(jobs: Jobs, size: int) -> None:
    files = {"lib/a.txt": b"first", "weights": random.Random(1).randbytes(size)}
    for name, content in files.items():
        (jobs.folder / "code" / name).parent.mkdir(parents=True, exist_ok=True)
        (jobs.folder / "code" / name).write_bytes(content)
    jobs.submit(CODE)
    (jobs.folder / "here").mkdir()
    for to, place in (("back", "back"), ("here/", "here/code")):
        assert f"{place}: copied 2 files" in copied(jobs, "train:code", to)
        assert {name: (jobs.folder / place / name).read_bytes() for name in files} == files
    refused = jobs.tfyard("cp", "code", "train:code")
    assert (refused.code != 0, "the code of a job does not change" in refused.err) == (True, True)


# --- much


class Cutting(Relay):
    """Cuts every connection once, after so many bytes."""

    left = GIGABYTE * 5 // 8

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
            before, self.left = self.left, self.left - len(data)
            if before > 0 >= self.left:
                self.cut()
        writer.close()


def peak(pid: int) -> int:
    """Bytes of memory that a process has had at most."""
    with suppress(FileNotFoundError):  # it has just ended
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


async def copied_by_relay(jobs: Jobs, *words: str) -> tuple[str, int]:
    """What is said, and the most memory that it took."""
    access = kubeconfig.load({}, str(jobs.cluster.kubeconfig))
    async with Cutting(access.cluster.server) as relay:
        behind = replace(access.cluster, server=relay.url)
        config = jobs.folder / "relay"
        config.write_text(kubeconfig.dump(replace(access, cluster=behind)))
        line = jobs.line("cp", *words, "--kubeconfig", str(config))
        process, highest = await asyncio.create_subprocess_exec(*line, cwd=jobs.folder, stderr=PIPE), 0
        while process.returncode is None:
            highest = max(highest, peak(process.pid))
            await asyncio.sleep(0.1)
        assert process.stderr
        told = (await process.stderr.read()).decode()
        assert process.returncode == 0, told
    return told, highest


@pytest.mark.long
async def test_a_gigabyte_takes_little_memory_both_ways_over_connections_that_are_cut(mnist: Jobs) -> None:
    directory, here = mnist.claim("out"), mnist.folder / "here"
    (directory / "large").mkdir(mode=0o777)
    for number in range(PARTS):
        with (directory / "large" / str(number)).open("wb") as file:
            file.write(os.urandom(1 << 20))
            file.truncate(GIGABYTE // PARTS)
    for words in (("mnist:/out/large", "here"), ("here", "mnist:/out/back")):
        told, highest = await copied_by_relay(mnist, *words)
        assert "trying again (files so far: " in told
        assert f"copied {PARTS} files" in told
        assert highest < 150 << 20
    for number in range(PARTS):
        parts = {digest(folder / str(number)) for folder in (directory / "large", here, directory / "back")}
        assert len(parts) == 1
    until(lambda: not mnist.helpers())
