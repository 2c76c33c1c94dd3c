"""The process that owns a run's tasks, so that none of them outlives it.

It is a child of tfyard and the parent of every container. It learns of tfyard's death, however sudden, by the
end of their socket; as a subreaper it inherits every orphan, however deep; then it kills them all and ends.
(PR_SET_PDEATHSIG alone does not do: grandchildren survive it. It is set as well, for the death of this process.)
Where the system allows, the tasks are in a PID namespace, which ends with this process: see anchor.py.

    python -m tfyard.node.supervisor FD     speaks JSON lines over the socket FD:
      in   {"op": "start", "id", "argv", "env", "cwd", "log", "mounts", "cgroup"}  {"op": "signal", "id", "signal"}
      out  {"event": "ready", "namespaces"}   {"event": "started", "id", "pid"}
           {"event": "exited", "id", "code", "cpu", "peak", "signalled"}
                                                              code: exit code, or 128 + signal; cpu: s; peak: bytes
                                                              signalled: it still ran when a signal was to be sent

Standard library only: it has to be there at once, and to stay small.
"""

import ctypes
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from tfyard.node import anchor, linux_namespaces, usage
from tfyard.node.orphans import MARK, children, is_ending, kill_group, owner

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
NOT_FOUND, NOT_STARTED = 127, 126
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Message = dict[str, Any]

_libc = ctypes.CDLL(None)


class Supervisor:
    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.running: dict[int, str] = {}
        self._used: dict[int, usage.Usage] = {}
        self._signalled: set[int] = set()
        self._cgroups: set[str] = set()
        self._views: dict[tuple[linux_namespaces.Mount, ...], linux_namespaces.View | OSError] = {}
        self._buffer = b""
        self._wake, wake = socket.socketpair()
        self._wake.setblocking(False)
        wake.setblocking(False)
        self._wake_end = wake  # kept: closing it would end the wake-ups
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._anchor = anchor.drop(wake)

    def serve(self) -> None:
        """Until the other end is gone."""
        self._say(event="ready", namespaces=self._anchor is not None or linux_namespaces.is_allowed())
        while True:
            readable, _, _ = select.select([self.channel, self._wake], [], [])
            if self._wake in readable:
                told = self._wake.recv(4096)
                if self._reap() or anchor.ORPHAN_ENDED in told:
                    self._sweep()
            if self.channel in readable and not self._listen():
                return

    def end(self) -> None:
        """Kill whoever is left, until nobody is: a dying child's children become ours, and are next."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        while True:
            for pid in [*self.running, *children()]:
                kill_group(pid, signal.SIGKILL)
            try:
                os.wait4(-1, 0)
            except ChildProcessError:
                break
        for path in filter(os.path.isdir, self._cgroups):
            os.rmdir(path)

    def _listen(self) -> bool:
        data = self.channel.recv(1 << 20)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        messages = [json.loads(line) for line in lines]
        if any(message["op"] == "signal" for message in messages):
            self._measure()
        for message in messages:
            self._obey(message)
        return bool(data)

    def _measure(self) -> None:
        """Before it is too late: a shell that is told to end does so without having waited for its program, and
        what the program has used is then in nobody's account."""
        used = usage.measure()
        self._used |= {pid: used[pid] for pid in self.running if pid in used}

    def _obey(self, message: Message) -> None:
        if message["op"] == "start":
            if message["cgroup"]:
                self._cgroups.add(os.path.dirname(message["cgroup"]))
            pid = _start(message, self._view(message["mounts"]))
            self.running[pid] = message["id"]
            self._say(event="started", id=message["id"], pid=pid)
        else:
            for pid in [pid for pid, name in self.running.items() if name == message["id"]]:
                if not is_ending(pid):
                    self._signalled.add(pid)
                kill_group(pid, message["signal"])

    def _view(self, mounts: list[list[Any]]) -> linux_namespaces.View | OSError | None:
        own_proc = self._anchor is not None
        if not mounts and not own_proc:
            return None
        key = tuple((source, target, bool(read_only)) for source, target, read_only in mounts)
        if key not in self._views:
            try:
                self._views[key] = linux_namespaces.make_view(key, own_proc=own_proc)
            except OSError as error:
                self._views[key] = error  # told in the log of each task that wants it
        return self._views[key]

    def _reap(self) -> bool:
        """Whether a child of ours has ended."""
        ended = False
        for pid in iter(_next_ended, None):
            ended = True
            if pid in self.running:
                self._bury(pid, self.running.pop(pid))
            else:
                os.waitpid(pid, 0)
        return ended

    def _bury(self, pid: int, name: str) -> None:
        kill_group(pid, signal.SIGKILL)  # as in a container: the others go with the first process
        _, status, final = os.wait4(pid, 0)
        before = self._used.pop(pid, usage.Usage(0.0, 0))
        cpu = max(final.ru_utime + final.ru_stime, before.cpu)
        peak = max(final.ru_maxrss * 1024, before.memory)
        signalled = pid in self._signalled
        self._signalled.discard(pid)
        code = _exit_code(status)
        self._say(event="exited", id=name, code=code, cpu=cpu, peak=peak, signalled=signalled)

    def _sweep(self) -> None:
        """Kill the orphans of tasks that are over; a daemon of a running task may stay."""
        alive = set(self.running.values())
        for pid in children(also_of=self._anchor):
            if pid not in (self._anchor, *self.running) and owner(pid) not in alive:
                kill_group(pid, signal.SIGKILL)

    def _say(self, **message: Any) -> None:
        try:
            self.channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return  # nobody listens any more: the next read sees the end and leads to `end`


def _start(message: Message, view: linux_namespaces.View | OSError | None) -> int:
    # A signal that comes between fork and exec must wait for the task: our own handlers are not the task's.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
        return pid
    try:
        _become(message, view)
    except OSError as error:
        os.write(2, f"tfyard: cannot start {message['argv'][0]}: {error.strerror or error}\n".encode())
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED)
    finally:
        os._exit(NOT_STARTED)


def _become(message: Message, view: linux_namespaces.View | OSError | None) -> None:
    """From a copy of this process to the task itself."""
    os.setsid()
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    log = os.open(message["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    if message["cgroup"]:
        with open(message["cgroup"], "w") as procs:
            procs.write(str(os.getpid()))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for number in (signal.SIGCHLD, signal.SIGPIPE, *ENDINGS):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    if isinstance(view, OSError):
        raise view
    if view is not None:
        view.join()
    try:
        os.chdir(message["cwd"])
    except OSError as error:
        raise OSError(error.errno, f"its working directory {message['cwd']}: {error.strerror}") from None
    os.execvpe(message["argv"][0], message["argv"], {**message["env"], MARK: message["id"]})


def _next_ended() -> int | None:
    """A child that has ended, left as it is: as long as nobody has waited for it, its group can be found."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def main() -> None:
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the terminal's wishes are tfyard's to obey
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    supervisor = Supervisor(socket.socket(fileno=int(sys.argv[1])))
    try:
        supervisor.serve()
    finally:
        supervisor.end()


if __name__ == "__main__":
    main()
