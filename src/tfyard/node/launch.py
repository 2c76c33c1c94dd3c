"""Starts a supervisor. It is ready after some 40 ms, and importing the rest of tfyard takes longer than that: who
knows that one will be needed calls `ahead` first, and both happen at the same time.

Standard library only, and little of it: this is imported before everything else.
"""

import atexit
import os
import socket
import subprocess
import sys

from tfyard.node.orphans import MARK

PACKAGES = __file__.rsplit(os.sep, 3)[0]
START = """import sys; sys.path.append({packages!r})
from tfyard.node.supervisor import main; main({fd}, **{options})"""


class Supervisor:
    """The process and our end of its socket. When that end closes, it kills its containers, removes the directory
    `scratch` and ends. `namespaces`: it keeps containers in a PID namespace where the system allows it."""

    def __init__(self, *, namespaces: bool, scratch: str = "") -> None:
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
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
            )

    def output(self) -> str:
        """What it printed, which is nothing unless it broke."""
        size = os.fstat(self._output).st_size
        return os.pread(self._output, size, 0).decode(errors="replace")

    def close(self) -> None:
        """End it, and everything that it started."""
        self.channel.close()
        self.process.wait()
        os.close(self._output)


_spare: list[Supervisor] = []


def ahead() -> None:
    """Start one for the next run. If there is none after all, it ends with us."""
    if not _spare:
        _spare.append(Supervisor(namespaces=True))
        atexit.register(_drop)


def take() -> Supervisor:
    """The one that was started ahead, or a new one."""
    return _spare.pop() if _spare else Supervisor(namespaces=True)


def _drop() -> None:
    while _spare:
        _spare.pop().close()
