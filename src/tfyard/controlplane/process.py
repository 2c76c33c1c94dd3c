"""Processes that end with the process that started them, for code without an event loop."""

import errno
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tfyard.errors import TfyardError
from tfyard.node.launch import SupervisorHandle
from tfyard.node.messages import MessageDecoder, encode
from tfyard.node.orphans import stat_fields
from tfyard.node.processes import ContainerCommand, start_message

ANSWER_TIMEOUT = 60.0
KILL_TIMEOUT = 10.0
POLL_INTERVAL = 0.02
LONGEST_LINE = 300
LOG_LINE = re.compile(r"\{|[IWEF]\d{4} ")
"""Beginning of log lines of etcd and Kubernetes."""


class ProcessFailed(TfyardError):
    """A component ended or did not start; the message ends with the last lines of its log."""


class SupervisorEnded(ProcessFailed):
    """The supervisor was killed, and every process with it: nothing can be started any more."""


class SyncProcesses:
    """Processes under one supervisor, as `node.processes.Processes` without asyncio; threads may share it.

    However this process ends, the supervisor kills them all and removes `scratch`. Its reports are read when a
    method needs them: there is no thread, because a thread and a later fork do not go together.
    """

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.pids: dict[str, int] = {}
        self._ended: set[str] = set()
        self._reached: dict[str, bool] = {}
        self._decoder = MessageDecoder()
        self._is_lost = False
        self._lock = threading.Lock()
        self._supervisor = SupervisorHandle(namespaces=False, scratch=str(scratch))
        self._channel = self._supervisor.channel

    def close(self) -> None:
        with self._lock:
            self._is_lost = True
            self._supervisor.close()
        # A supervisor that was killed did not remove it.
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self, id: str, argv: list[str], log: Path) -> int | None:
        """Start a process; returns its id, None if the supervisor has ended."""
        command = ContainerCommand(argv=argv, env=dict(os.environ), cwd=str(self.scratch))
        self._send(start_message(id, command, log))
        self._wait(lambda: id in self.pids, ANSWER_TIMEOUT)
        return self.pids.get(id)

    def signal(self, id: str, number: signal.Signals) -> bool:
        """Send a signal; returns whether the process was still running."""
        self._reached.pop(id, None)
        self._send({"op": "signal", "id": id, "signal": int(number)})
        self._wait(lambda: id in self._reached, ANSWER_TIMEOUT)
        return self._reached.pop(id, False)

    def is_running(self, id: str) -> bool:
        self._read(0)
        return id in self.pids and id not in self._ended and not self._is_lost

    def wait(self, id: str, timeout: float) -> bool:
        """Whether the process ends before the timeout."""
        self._wait(lambda: not self.is_running(id), timeout)
        return not self.is_running(id)

    def _wait(self, holds: Callable[[], bool], timeout: float) -> None:
        end = time.monotonic() + timeout
        while not (self._is_lost or holds()) and time.monotonic() < end:
            self._read(POLL_INTERVAL)

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            if self._is_lost:
                return
            self._channel.settimeout(ANSWER_TIMEOUT)
            try:
                self._channel.sendall(encode(message))
            except OSError:
                self._is_lost = True

    def _read(self, timeout: float) -> None:
        with self._lock:
            if self._is_lost:
                return
            self._channel.settimeout(timeout)
            try:
                data = self._channel.recv(1 << 16)
            except (BlockingIOError, TimeoutError):
                return
            except OSError:
                data = b""
            self._is_lost = not data
            for message in self._decoder.feed(data):
                self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        match message:
            case {"event": "started", "id": id, "pid": pid}:
                self.pids[id] = pid
            case {"event": "signalled", "id": id, "reached": reached}:
                self._reached[id] = reached
            case {"event": "exited", "id": id}:
                self._ended.add(id)


class Process:
    """One command that can be started again; its output is appended to `log`."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, processes: SyncProcesses) -> None:
        self.name, self.argv, self.log = name, list(argv), log
        self.pid = 0
        self._processes, self._starts = processes, 0

    @property
    def _id(self) -> str:
        return f"{self.name}/{self._starts}"

    def start(self) -> None:
        if not shutil.which(self.argv[0]):
            raise ProcessFailed(f"{self.name} did not start: {self.argv[0]}: {os.strerror(errno.ENOENT)}")
        self._starts += 1
        pid = self._processes.start(self._id, self.argv, self.log)
        if pid is None:
            raise SupervisorEnded(f"{self.name} did not start: its supervisor has ended")
        self.pid = pid

    @property
    def running(self) -> bool:
        return self._processes.is_running(self._id)

    def pause(self) -> None:
        """Stop the process by SIGSTOP: its connections stay open without answers, as of a machine that hangs."""
        self._signal(signal.SIGSTOP)
        end = time.monotonic() + ANSWER_TIMEOUT
        while not _is_stopped(self.pid) and time.monotonic() < end:
            time.sleep(0.001)  # the signal is sent, but a thread that runs may answer one more request

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process by SIGKILL; the kernel closes its connections."""
        self._processes.signal(self._id, signal.SIGKILL)
        if not self._processes.wait(self._id, KILL_TIMEOUT):
            raise ProcessFailed(f"{self.name} is still there {KILL_TIMEOUT:.0f} s after SIGKILL")

    def stop(self, grace: float = 5) -> None:
        """Send SIGTERM, wait, send SIGKILL. The grace period is short: an apiserver takes 20 s and more to end."""
        for number in (signal.SIGTERM, signal.SIGCONT):  # a paused process receives nothing but SIGKILL
            self._processes.signal(self._id, number)
        if not self._processes.wait(self._id, grace):
            self.kill()

    def log_tail(self, lines: int = 15) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return last_words(text, lines) or "its log is empty"

    def _signal(self, number: signal.Signals) -> None:
        if not self._processes.signal(self._id, number):
            raise ProcessFailed(f"{self.name} is not running: {self.log_tail()}")


def last_words(log: str, count: int) -> str:
    """The last lines, cut to a readable length; of a Go program that panicked the message without its stacks."""
    lines = log.splitlines()
    panics = [at for at, line in enumerate(lines) if line.startswith(("panic: ", "fatal error: "))]
    if panics and not any(LOG_LINE.match(line) for line in lines[panics[-1] :]):
        lines = lines[: panics[-1] + 1]
    return "\n".join(line[:LONGEST_LINE] for line in lines[-count:])


def _is_stopped(pid: int) -> bool:
    """Whether every thread of the process is stopped; True where there is no /proc."""
    return all(stat_fields(f"{pid}/task/{task.name}")[:1] in ([b"T"], []) for task in _threads(pid))


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return []
