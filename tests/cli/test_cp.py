"""`tfyard cp`, as a process of its own."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.running import tfyard, without
from tests.remote.code_node import code_node, job_of
from tests.remote.copy_node import copy_node
from tests.remote.test_code_store import JOB as CODE_JOB
from tests.remote.test_code_store import LARGE, created, folder, planned, submitted
from tfyard.cli.cp import InJob, in_job
from tfyard.testing import ControlPlane

JOB = """\
name: volumes
image: example/train:1
run: mkdir -p /out/model && echo trained > /out/model/weights && ln -sf weights /out/model/latest
worker: 1
volumes: {out: {claim: results, at: /out}}
"""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("mnist:/out/model", InJob("mnist", "/out/model")),
        ("mnist:worker-1:/tmp/x", InJob("mnist", "/tmp/x", "worker-1")),
        ("mnist:/out/a:b", InJob("mnist", "/out/a:b")),
        ("@latest:code", InJob("@latest", "code")),
        ("./a:b", None),
        ("/a:b", None),
        ("model", None),
        (":x", None),
    ],
)
def test_what_is_in_a_job_is_told_from_a_path_of_this_machine(text: str, meant: InJob | None) -> None:
    assert in_job(text) == meant


def test_a_command_line_that_is_wrong_says_what_to_write() -> None:
    for words, text in ((("a", "b"), "none is"), (("a:/b", "c:/d"), "both are")):
        done = tfyard("cp", *words)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "one of SOURCE and DESTINATION must be in a job" in done.err
        assert text in done.err


@pytest.mark.processes
def test_the_same_words_copy_from_a_run_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    assert tfyard("run", "job.yaml", cwd=tmp_path).code == 0
    done = tfyard("cp", "volumes:/out/model", ".", "--local", cwd=tmp_path)
    assert (done.code, done.err) == (0, "tfyard: model: copied 1 file, 8 B\n")
    assert (tmp_path / "model" / "latest").read_text() == "trained\n"
    done = tfyard("cp", "volumes:/out/model/", "model", "--local", cwd=tmp_path)
    assert done.err == "tfyard: model: copied 0 files, 0 B; 1 there already\n"
    done = tfyard("cp", "model/weights", "volumes:/out/", "--local", cwd=tmp_path)
    assert (done.code, (tmp_path / done.err.split()[1][:-1]).read_text()) == (0, "trained\n")
    for words, text in (
        (("volumes:/tmp/x", "."), "/tmp/x is not on a volume that is kept; /out is"),
        (("volumes:/out/model", "job.yaml"), "job.yaml is a file, and would become a folder"),
    ):
        done = tfyard("cp", *words, "--local", cwd=tmp_path)
        assert (done.code != 0, text in done.err, done.err.count("\n")) == (True, True, 1), done.err


async def start(
    plane: ControlPlane, namespace: str, *words: str, cwd: Path | None = None, missing: str = ""
) -> Process:
    program = ["-c", without(missing)] if missing else ["-m", "tfyard"]
    command = [sys.executable, *program, "cp", *words, "-n", namespace]
    environ = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    return await asyncio.create_subprocess_exec(
        *command, env=environ, stderr=PIPE, start_new_session=True, cwd=cwd
    )


@pytest.mark.cluster
@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
async def test_ctrl_c_leaves_no_pod_and_no_half_file(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path, number: signal.Signals
) -> None:
    async with copy_node(control_plane, namespace, tmp_path) as node:
        directory = await node.claim()
        with (directory / "huge").open("wb") as file:
            file.truncate(1 << 40)  # its checksum alone takes hours
        (directory / "small").write_text("small")
        await node.job()
        done = await start(control_plane, namespace, "mnist:/out/small", str(tmp_path / "here"))
        assert (await done.communicate())[1] == f"tfyard: {tmp_path}/here: copied 1 file, 5 B\n".encode()
        assert done.returncode == 0
        bare = await start(control_plane, namespace, "mnist:/out/small", "x", missing="aiohttp")
        needed = b'tfyard: tfyard cp needs aiohttp: pip install "tfyard[kubernetes]"\n'
        assert (await bare.communicate())[1] == needed
        process = await start(control_plane, namespace, "mnist:/out/huge", str(tmp_path / "huge"))
        try:
            await node.until_helper_runs()
        finally:
            process.send_signal(number)
        assert (await process.communicate(), process.returncode) == ((None, b""), 128 + number)
        await node.until_no_helper()
        assert not list(tmp_path.glob("huge*"))


@pytest.mark.cluster
@pytest.mark.processes
@pytest.mark.parametrize(
    "weights", [pytest.param(b"1", id="small"), pytest.param(LARGE, id="large", marks=pytest.mark.long)]
)
async def test_the_code_of_a_job_comes_back_from_a_config_map_and_from_a_claim(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path, weights: bytes
) -> None:
    files = {"lib/a.txt": b"first", "weights": weights}
    folder(tmp_path / "code", files)
    async with code_node(control_plane, namespace, tmp_path) as node:
        plan = planned(node.access, job_of(CODE_JOB.format(code="code"), namespace), tmp_path)
        await submitted(node, plan)
        await created(node, plan.job)
        for to, place in (("back", "back"), (".", "code")):
            (here := tmp_path / plan.kind).mkdir(exist_ok=True)
            process = await start(control_plane, namespace, "train:code", to, cwd=here)
            assert f"{place}: copied 2 files" in (await process.communicate())[1].decode()
            assert {name: (here / place / name).read_bytes() for name in files} == files
        process = await start(control_plane, namespace, str(tmp_path / "code"), "train:code")
        assert b"the code of a job does not change" in (await process.communicate())[1]


def peak(pid: int) -> int:
    """Bytes of memory that a process has had at most."""
    with suppress(FileNotFoundError):  # it has just ended
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.processes
async def test_a_gigabyte_takes_little_memory_both_ways(
    control_plane: ControlPlane, crds: None, namespace: str, tmp_path: Path
) -> None:
    async with copy_node(control_plane, namespace, tmp_path) as node:
        directory, here = await node.claim(), tmp_path / "here"
        with (directory / "large").open("wb") as file:
            file.write(os.urandom(1 << 20))
            file.truncate(1 << 30)
        await node.job()
        for words in (("mnist:/out/large", str(here)), (str(here), "mnist:/out/back")):
            process, highest = await start(control_plane, namespace, *words), 0
            while process.returncode is None:
                highest = max(highest, peak(process.pid))
                await asyncio.sleep(0.1)
            assert process.returncode == 0
            assert highest < 150 << 20
        assert (directory / "back").stat().st_size == 1 << 30
