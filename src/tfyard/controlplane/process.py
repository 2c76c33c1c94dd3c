"""One supervised child process: started, paused, killed and stopped by name, never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tfyard.errors import TfyardError

SUPERVISOR = Path(__file__).with_name("supervisor.py")


class ProcessFailed(TfyardError):
    """A component ended, or did not come up; the message ends with the last lines of its log."""


class Process:
    """A command under a supervisor of its own, its output appended to `log`."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, scratch: Path) -> None:
        self.name, self.argv, self.log, self.scratch = name, list(argv), log, scratch
        self.pid = 0
        self._supervisor: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._collect(10)  # of an earlier life that ended by itself
        # -I -S: no site packages, no environment; the supervisor is up in some 20 ms.
        command = [sys.executable, "-I", "-S", str(SUPERVISOR), "--scratch", str(self.scratch), *self.argv]
        with self.log.open("ab") as log:
            self._supervisor = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert self._supervisor.stdout is not None
        first_line = self._supervisor.stdout.readline()
        if not first_line:
            self._collect(10)
            raise ProcessFailed(f"{self.name} did not start: {self.last_words()}")
        self.pid = int(first_line)

    @property
    def running(self) -> bool:
        return self._supervisor is not None and self._supervisor.poll() is None

    def _demand(self, number: signal.Signals) -> None:
        if not self._deliver(number):
            raise ProcessFailed(f"{self.name} is not running: {self.last_words()}")

    def pause(self) -> None:
        """Its connections stay open and nobody answers: what a hung machine looks like to its clients."""
        self._demand(signal.SIGSTOP)

    def resume(self) -> None:
        self._demand(signal.SIGCONT)

    def kill(self) -> None:
        """No warning, no farewell; the kernel closes its connections."""
        self._deliver(signal.SIGKILL)
        self._collect(10)

    def stop(self, grace: float = 5) -> None:
        """Ask, wait, then kill. The grace is short: an apiserver takes 20 s and more for its farewells."""
        self._deliver(signal.SIGTERM)
        self._deliver(signal.SIGCONT)  # a paused process sees nothing but SIGKILL
        self._wait(grace)
        self.kill()

    def last_words(self, lines: int = 15) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:]) or "its log is empty"

    def _deliver(self, number: signal.Signals) -> bool:
        """Whether there was somebody to receive it."""
        if not self.running:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False  # it has ended, and its supervisor is about to
        return True

    def _wait(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        while self.running and time.monotonic() < end:
            time.sleep(0.02)

    def _collect(self, timeout: float) -> None:
        if self._supervisor is None:
            return
        self._wait(timeout)
        for pipe in (self._supervisor.stdin, self._supervisor.stdout):
            if pipe is not None:
                pipe.close()  # for a supervisor that still runs, this is the order to kill everything
        self._supervisor.wait(timeout)
        self._supervisor = None
