"""A node, seen from outside: start, stop, cut its power, enter it."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tfyard.controlplane.binaries import locate
from tfyard.controlplane.components import LOOPBACK
from tfyard.controlplane.process import ProcessFailed
from tools.node import binaries, cgroups, images
from tools.node.images import Image, Images

ROOT = Path(__file__).parents[2]
NAMESPACES = ("--mount", "--net", "--pid", "--ipc", "--uts")
END_TIMEOUT = 20.0
NOT_BELOW = ("/run", "/var/lib", "/var/log", "/proc", "/sys")


class Node:
    """One node per folder. What is in the folder is what a reboot leaves: objects, images, logs, claims."""

    def __init__(self, state: Path) -> None:
        self.state = state.resolve()
        if any(self.state.is_relative_to(folder) for folder in NOT_BELOW):
            raise ProcessFailed(f"{state}: the node mounts folders of its own over {', '.join(NOT_BELOW)}")
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.kubeconfig = self.state / "kubeconfig"
        self.images = Images(self.state / "images")
        self._process: subprocess.Popen[bytes] | None = None
        self._add_bases()

    def _add_bases(self) -> None:
        """Every name is an image with TensorFlow, unless another one was named."""
        for name in images.BASES:
            self.images.borrow(images.base(name))
        self.images.name("*", images.base("tensorflow"))
        self.images.name("library/busybox:*", images.base("busybox"))
        self.images.name("pause:1", self._pause())

    def _pause(self) -> Image:
        root = self.state / "pause"
        root.mkdir(exist_ok=True)
        shutil.copy2(binaries.path("pause"), root / "pause")
        return Image().on_top(self.images.layer(root), Entrypoint=["/pause"])

    # --- its life

    def start(self, until: int | None = None) -> None:
        """Wait until pods can be created. `until`: the id of a process with which the node ends."""
        binaries.check()
        locate()
        (self.state / "ready").unlink(missing_ok=True)
        with _listen(self._port()) as listening, self._log.open("w") as log:
            (self.state / "port").write_text(str(listening.getsockname()[1]))
            descriptors = [listening.fileno(), *([os.pidfd_open(until)] if until else [])]
            inside = [sys.executable, "-m", "tools.node.inside", str(self.state), *map(str, descriptors)]
            command = ["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", *inside]
            self._process = process = subprocess.Popen(
                command,
                cwd=ROOT,
                pass_fds=descriptors,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        (self.state / "pid").write_text(str(process.pid))
        while not (self.state / "ready").exists():
            if process.poll() is not None:
                raise ProcessFailed(f"the node ended:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends all parts by SIGTERM, as an orderly shutdown does."""
        self._end(signal.SIGTERM)

    def cut_power(self) -> None:
        """Every process of it ends at once, and says nothing."""
        self._end(signal.SIGKILL)

    def purge(self) -> None:
        self.stop()
        shutil.rmtree(self.state, ignore_errors=True)

    def enter(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command inside."""
        return subprocess.run(self.enter_command(*command), capture_output=True, text=True, timeout=600)

    def enter_command(self, *command: str) -> list[str]:
        path = f"PATH={binaries.path('ctr').parent}:{os.environ['PATH']}"
        return ["nsenter", "-t", str(self._init()), *NAMESPACES, "--", "env", path, *command]

    # --- its processes

    @property
    def _log(self) -> Path:
        return self.state / "inside.log"

    def _port(self) -> int:
        """The one that it had before: kubeconfigs name it."""
        file = self.state / "port"
        return int(file.read_text()) if file.exists() else 0

    def _unshare(self) -> int | None:
        """The process that waits for the init process, if it is still the one that we started."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.state / "pid").read_text())
            if str(self.state).encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return pid
        return None

    def _init(self) -> int:
        parent = self._unshare()
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split() if parent else []
        if not children:
            raise ProcessFailed(f"no node runs in {self.state}")
        return int(children[0])

    def _end(self, number: signal.Signals) -> None:
        if parent := self._unshare():
            with contextlib.suppress(ProcessFailed, ProcessLookupError):
                os.kill(self._init(), number)
            self._wait(parent)
        cgroups.remove(self.state)

    def _wait(self, pid: int) -> None:
        """Until the process has ended; with SIGKILL if it takes too long."""
        end = time.monotonic() + END_TIMEOUT
        while self._process.poll() is None if self._process else Path(f"/proc/{pid}").exists():
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((LOOPBACK, port))
    listening.listen(128)
    return listening
