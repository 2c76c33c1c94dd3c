"""A box for tests: started and ended by the commands that users have, in a state directory of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.cli.running import Result, tfyard
from tfyard.controlplane.binaries import MissingBinaries, locate
from tfyard.dev.folder import BoxFolder
from tfyard.dev.processes import family
from tfyard.node.orphans import stat_fields

T = TypeVar("T")
PATIENCE = 60.0


def until(look: Callable[[], T], timeout: float = PATIENCE) -> T:
    """What `look` returns, once it is true."""
    end = time.monotonic() + timeout
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.2)
    assert found, f"not within {timeout:.0f} s"
    return found


class TestBox:
    """One box of a state directory; several can share the directory."""

    __test__ = False

    def __init__(self, state: Path, name: str = "tfyard-dev") -> None:
        self.environ = {"XDG_STATE_HOME": str(state), "TFYARD_DEV_UNTIL_PID": str(os.getpid())}
        self.folder = BoxFolder.of(name, self.environ)
        self.name = name

    def dev(self, command: str, *options: str) -> Result:
        return tfyard("dev", command, "--name", self.name, *options, **self.environ)

    def up(self, *options: str) -> Result:
        done = self.dev("up", *options)
        assert done.code == 0, done.err
        return done

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.dev("status", "-o", "json").out))

    @property
    def pid(self) -> int:
        found = self.folder.holder()
        assert found is not None, "the box does not run"
        return found

    def family(self) -> list[int]:
        return family(self.pid)

    def pid_of(self, program: str) -> int:
        """Of the process in the box whose command line begins with, or has as an argument, this word."""
        return next(pid for pid in self.family() if program in command_line(pid))

    def kubectl(self, *args: str, stdin: str = "", timeout: float = 120) -> str:
        command = [str(locate().path("kubectl")), f"--kubeconfig={self.folder.kubeconfig}", *args]
        environ = {**os.environ, "HOME": str(self.folder.path), "KUBERC": "off"}
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout, env=environ
        )
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
        return done.stdout

    def get(self, *args: str) -> Any:
        return json.loads(self.kubectl("get", *args, "-o", "json"))


def command_line(pid: int) -> list[str]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [Path(words[0]).name, *words[1:]]


def alive(pids: list[int]) -> list[int]:
    """A zombie is not: somebody else has not asked yet how it ended."""
    return [pid for pid in pids if stat_fields(pid)[:1] not in ([], [b"Z"])]


@contextmanager
def running(state: Path, *options: str, name: str = "tfyard-dev") -> Iterator[TestBox]:
    """Ended afterwards, whatever the test did to it."""
    try:
        locate()
    except MissingBinaries as problem:
        if os.environ.get("CI"):
            pytest.fail(str(problem), pytrace=False)
        pytest.skip(str(problem))
    box = TestBox(state, name)
    try:
        box.up(*options)
        yield box
    finally:
        done = subprocess.run(
            [sys.executable, "-m", "tfyard", "dev", "down", "--name", name],
            env={**os.environ, **box.environ},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
