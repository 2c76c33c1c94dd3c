"""The clusters on which the tests of this room run: `tfyard dev`, or a real node (`make test-node`).

Tests see a `Cluster` and do not ask which one it is. What differs between the two is declared here, and nowhere
else: any other difference is a defect of one of the two.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import yaml

from tests.cli.running import Result, tfyard
from tfyard.controlplane.binaries import locate
from tfyard.dev.processes import family
from tfyard.model import Manifest
from tfyard.node.orphans import stat_fields

T = TypeVar("T")
PATIENCE = 60.0
GPUS = ("nvidia.com/gpu", "alpha.kubernetes.io/nvidia-gpu")
"""Resources of which the node says that it has four, though it has none."""


class Registry(Protocol):
    """Where a cluster gets images from."""

    def refuse(self, image: str, status: int) -> None:
        """Answer with this HTTP status."""


def until(look: Callable[[], T], timeout: float = PATIENCE) -> T:
    """What `look` returns, once it is true."""
    end = time.monotonic() + timeout
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.2)
    assert found, f"not within {timeout:.0f} s"
    return found


class Cluster:
    """What tests ask of a cluster."""

    __test__ = False
    name: str
    """Of its one node."""
    has_metrics: bool
    """Whether something measures pods: Kubernetes itself does not."""
    registry: Registry | None = None
    """None: images are not used."""

    @property
    def kubeconfig(self) -> Path:
        raise NotImplementedError

    @property
    def claims(self) -> Path:
        """The folder of this machine in which claims have theirs."""
        raise NotImplementedError

    @property
    def pid(self) -> int:
        """Of the process above all others of it."""
        raise NotImplementedError

    def reboot(self) -> None:
        """Cut the power, and start the machine again."""
        raise NotImplementedError

    def share(self, server: str, path: str) -> Path:
        """The folder of this machine that is a directory of an NFS server."""
        raise NotImplementedError

    def shared(self, manifests: str) -> str:
        """Manifests whose NFS volumes this cluster can mount."""
        raise NotImplementedError

    def guest(self, name: str) -> list[Manifest]:
        """What installs a program of others (see tools/node/guests.py), whose containers this cluster can run."""
        raise NotImplementedError

    # --- the same everywhere

    def kubectl(self, *args: str, stdin: str = "", timeout: float = 120) -> str:
        done = subprocess.run(
            self.kubectl_command(*args), input=stdin, capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
        return done.stdout

    def kubectl_command(self, *args: str) -> list[str]:
        """With a home of its own: caches go with the cluster, and the user's kuberc changes nothing."""
        home = ["env", f"HOME={self.kubeconfig.parent}", "KUBERC=off"]
        return [*home, str(locate().path("kubectl")), f"--kubeconfig={self.kubeconfig}", *args]

    def get(self, *args: str) -> Any:
        return json.loads(self.kubectl("get", *args, "-o", "json"))

    def apply(self, *manifests: Any, namespace: str = "default") -> None:
        self.kubectl("apply", "-n", namespace, "-f", "-", stdin=yaml.safe_dump_all(manifests))

    def tfyard(self, *words: str | Path, cwd: Path | None = None, stdin: bytes = b"") -> Result:
        """As a user whose kubeconfig names this cluster; not where a run of this machine may be found."""
        return tfyard(*words, cwd=cwd or self.kubeconfig.parent, stdin=stdin, KUBECONFIG=str(self.kubeconfig))

    def start_tfyard(self, *words: str, cwd: Path | None = None, **options: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "tfyard", *words],
            cwd=cwd or self.kubeconfig.parent,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options,
        )

    def family(self) -> list[int]:
        return family(self.pid)

    def pid_of(self, program: str) -> int:
        """Of the process whose command line begins with, or has as an argument, this word."""
        return next(pid for pid in self.family() if program in command_line(pid))

    def program_of(self, pod: str) -> int:
        """The process that trains in a pod."""
        mark = f"HOSTNAME={pod}".encode()
        pids = [pid for pid in self.family() if mark in environment(pid)]
        assert pids, f"no process of {pod}"
        return max(pids)


def command_line(pid: int) -> list[str]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [Path(words[0]).name, *words[1:]]


def environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def alive(pids: list[int]) -> list[int]:
    """A zombie is not: somebody else has not asked yet how it ended."""
    return [pid for pid in pids if stat_fields(pid)[:1] not in ([], [b"Z"])]
