"""The job's code on this machine."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tfyard.errors import Usage
from tfyard.local import code
from tfyard.model import Code

UNDER_A_TERMINAL = """
import signal
from tfyard.__main__ import main
signal.signal(signal.SIGHUP, signal.SIG_DFL)
main()
"""
"""Tests may run under nohup, and what they start inherits that SIGHUP is ignored."""


def test_a_folder_of_code_must_exist(tmp_path: Path) -> None:
    assert code.folder(Code(kind="folder", source="."), tmp_path, tmp_path / "t") == tmp_path
    with pytest.raises(Usage, match="is not a folder"):
        code.folder(Code(kind="folder", source="absent"), tmp_path, tmp_path / "t")


def test_git_gets_an_address_and_a_ref_and_no_options(tmp_path: Path) -> None:
    """Also where nothing has checked them: a path is no ref, either."""
    repository = tmp_path / "repo"
    repository.mkdir()
    (repository / "a.py").write_text("1")
    for command in (
        "init -q -b main",
        "add -A",
        "-c user.name=a -c user.email=a@b commit -q -m x",
        "branch -q b",
    ):
        subprocess.run(["git", "-C", str(repository), *command.split()], check=True)
    code.fetch(Code(kind="git", source=str(repository), ref="b"), tmp_path / "target")
    assert (tmp_path / "target" / "a.py").read_text() == "1"
    for number, (source, ref) in enumerate((("--upload-pack=touch x", ""), (str(repository), "a.py"))):
        with pytest.raises(Usage, match=f"code: {source}: fatal: "):
            code.fetch(Code(kind="git", source=source, ref=ref), tmp_path / f"target-{number}")


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("name", ["a.git", "a.zip"])
def test_a_signal_while_code_is_fetched_ends_the_command_and_leaves_nothing(
    tmp_path: Path, silent_server: str, number: int, name: str
) -> None:
    address = f"http://{silent_server}/{name}"
    (tmp_path / "job.yaml").write_text(f"name: j\nimage: none\ncode: {address}\nrun: python train.py\n")
    command = [sys.executable, "-c", UNDER_A_TERMINAL, "run", "job.yaml"]
    with subprocess.Popen(
        command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        try:
            assert run.stdout is not None
            assert run.stdout.readline() == f"the code is fetched from {address}\n"
            while name == "a.git" and len(processes_about(address)) < 3:
                assert run.poll() is None
                time.sleep(0.01)
            run.send_signal(number)
            _, errors = run.communicate(timeout=60)
        finally:
            run.kill()
    told = f"tfyard: {address} was not fetched: the run was interrupted; nothing was started\n"
    assert (run.returncode, errors) == (130, told)
    assert processes_about(address) == []
    assert list(tmp_path.glob(".tfyard/runs/*")) == []


def processes_about(address: str) -> list[Path]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"git" in (words := path.read_bytes()) and address.encode() in words:
                found.append(path)
    return found


@pytest.mark.processes
def test_a_run_whose_code_is_not_there_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        f"name: j\nimage: none\ncode: {{git: {tmp_path}/absent}}\nrun: python x.py\n"
    )
    done = tfyard("run", "job.yaml", cwd=tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert list(tmp_path.glob(".tfyard/runs/*")) == []
