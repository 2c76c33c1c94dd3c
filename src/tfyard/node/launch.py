"""Starts a supervisor. It is ready after some 40 ms, and importing the rest of tfyard takes longer than that: a
command that will need one calls `ahead` first, and both happen at the same time.

Standard library only, and little of it: this is imported before everything else.
"""

import atexit
import os
import socket
import subprocess
import sys

from tfyard.node import standard_input
from tfyard.node.orphans import MARK

PACKAGES = __file__.rsplit(os.sep, 3)[0]
START = """import sys; sys.path.append({packages!r})
from tfyard.node.supervisor import main; main({fd}, **{options})"""


class SupervisorHandle:
    """The process and our end of its socket. When that end closes, it kills its containers, removes the directory
    `scratch` and ends. `namespaces`: it keeps containers in a PID namespace where the system allows it. `stdin`:
    what containers with a standard input read, as of Popen."""

    def __init__(
        self, *, namespaces: bool, scratch: str = "", stdin: int | None = subprocess.DEVNULL
    ) -> None:
        self.channel, theirs = socket.socketpair()
        self._output = os.memfd_create("supervisor")
        options = {"namespaces": namespaces, "scratch": scratch}
        start = START.format(packages=PACKAGES, fd=theirs.fileno(), options=options)
        with theirs:
            # -I -S: no site packages, no PYTHON* variables. File names are encoded as here.
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", "-c", start],
                pass_fds=[theirs.fileno()],
                # It belongs to no container, even if we run in one ourselves.
                env={name: value for name, value in os.environ.items() if name != MARK},
                stdin=stdin,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
            )

    def output(self) -> str:
        """Output of the supervisor; empty unless it failed."""
        size = os.fstat(self._output).st_size
        return os.pread(self._output, size, 0).decode(errors="replace")

    def close(self) -> None:
        """End the supervisor, and everything that it started."""
        self.channel.close()
        self.process.wait()
        os.close(self._output)


_spare: list[SupervisorHandle] = []


def ahead() -> None:
    """Start a supervisor for the next run of this command, whose standard input it has. Without a run, it ends
    with this process."""
    if not _spare:
        stdin = None if standard_input.is_usable() else subprocess.DEVNULL
        _spare.append(SupervisorHandle(namespaces=True, stdin=stdin))
        atexit.register(_drop)


def take() -> SupervisorHandle:
    """The supervisor that was started ahead, or a new one."""
    return _spare.pop() if _spare else SupervisorHandle(namespaces=True)


def _drop() -> None:
    while _spare:
        _spare.pop().close()
