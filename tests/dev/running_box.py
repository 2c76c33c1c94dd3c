"""A cluster of `tfyard dev` for tests, in a state directory of its own: started and ended by users' commands."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Result, tfyard
from tests.cluster.clusters import Cluster
from tfyard.controlplane.binaries import MissingBinaries, locate
from tfyard.dev.folder import BoxFolder
from tfyard.model import Manifest
from tools.node import guests


class TestBox(Cluster):
    """One cluster of a state directory; several can share the directory."""

    has_metrics = True

    def __init__(self, state: Path, name: str = "tfyard-dev") -> None:
        self.environ = {"XDG_STATE_HOME": str(state), "TFYARD_DEV_UNTIL_PID": str(os.getpid())}
        self.folder = BoxFolder(state / "tfyard" / "dev" / name)
        self.name = name
        self._options: tuple[str, ...] = ()

    @property
    def kubeconfig(self) -> Path:
        return self.folder.kubeconfig

    @property
    def claims(self) -> Path:
        return self.folder.data / "claims"

    @property
    def pid(self) -> int:
        holder = self.folder.holder()
        assert holder is not None, "it does not run"
        return holder

    def dev(self, command: str, *options: str) -> Result:
        return tfyard("dev", command, "--name", self.name, *options, **self.environ)

    def up(self, *options: str) -> Result:
        self._options = options
        done = self.dev("up", *options)
        assert done.code == 0, done.err
        return done

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.dev("status", "-o", "json").out))

    def reboot(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.up(*self._options)

    def share(self, server: str, path: str) -> Path:
        folder = self.folder.data / "node" / "shares" / f"nfs-{server}{path.replace('/', '-')}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def shared(self, manifests: str) -> str:
        return manifests

    def guest(self, name: str) -> list[Manifest]:
        """There are no images: a container's command is the program of this machine."""
        return [guests.as_processes(name, each) for each in guests.manifests(name)]


@contextmanager
def running(state: Path, *options: str, name: str = "tfyard-dev") -> Iterator[TestBox]:
    """A cluster that is ended afterwards, whatever the test did to it."""
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
