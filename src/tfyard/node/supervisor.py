"""The parent of processes that must not outlive the program that asked for them: containers, control planes.

It is a child of that program, the asker. It notices the asker's death, however sudden, by the end of their socket;
as a subreaper it adopts every orphan, however deep; then it kills all of them and ends. (PR_SET_PDEATHSIG in each
process is not enough: grandchildren survive it, and in an asker with threads it fires when the forking *thread*
ends. Here, with a single thread, it is set as well, in case this supervisor is killed.) With `namespaces`, where
the system allows them, the processes are in a PID namespace that ends with this process: see linux_namespaces.py.

`main(fd, ...)` exchanges messages (see messages.py) over the socket `fd`:
    in   {"op": "start", "id", "argv", "env", "cwd", "log", "mounts", "cgroup", "network"}
         with "stdio": three paths that it opens instead of "log"; "tty": they are a terminal; "hostname": its own
         {"op": "signal", "id", "signal"}
         {"op": "scratch", "path"}                        a directory to remove when the asker is gone
         {"op": "forget", "mounts"}                       nothing else will be started with these mounts
    out  {"event": "ready", "namespaces"}   {"event": "started", "id", "pid"}
         {"event": "signalled", "id", "reached"}          reached: it was still running
         {"event": "exited", "id", "code", "cpu", "peak", "signalled"}
                                                          code: exit code, or 128 + signal; cpu: s; peak: bytes
                                                          signalled: it was still running when a signal was sent

Standard library only, and started without site packages (see launch.py): it must be up in
milliseconds and stay small.
"""

import os
import select
import signal
import socket
import sys

from tfyard.node import capabilities, linux_namespaces, usage
from tfyard.node.messages import Decoder, encode
from tfyard.node.orphans import MARK, adopt_orphans, children, die_with, is_exiting, kill_group, owner

NOT_FOUND, NOT_STARTED = 127, 126
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]


class Supervisor:
    def __init__(self, channel: socket.socket, *, namespaces: bool) -> None:
        self.channel = channel
        self.running: dict[int, str] = {}
        self._used: dict[int, usage.ResourceUse] = {}
        self._signalled: set[int] = set()
        self._cgroups: set[str] = set()
        self.scratch = ""
        """A directory that is removed when the asker is gone; empty: none."""
        self._views: dict[tuple[linux_namespaces.Mount, ...], linux_namespaces.View | OSError] = {}
        self._decoder = Decoder()
        self._wake, wake = socket.socketpair()
        self._wake.setblocking(False)
        wake.setblocking(False)
        self._wake_end = wake  # kept: closing it would end the wake-ups
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._anchor = linux_namespaces.start_anchor(wake) if namespaces else None
        self._namespaces = self._anchor is not None or (namespaces and linux_namespaces.is_allowed())

    def serve(self) -> None:
        """Until the asker is gone."""
        self._send(event="ready", namespaces=self._namespaces)
        self._prepare()
        while True:
            readable, _, _ = select.select([self.channel, self._wake], [], [])
            if self._wake in readable:
                woken = self._wake.recv(4096)
                if self._reap() or linux_namespaces.ORPHAN_ENDED in woken:
                    self._kill_orphans()
            if self.channel in readable and not self._receive():
                return

    def end(self) -> None:
        """Kill until no child is left: the children of a killed child become ours, and are killed next."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for pid in filter(None, [*self.running, self._anchor]):
            kill_group(pid, signal.SIGKILL)
        while _has_children():
            for pid in children():
                kill_group(pid, signal.SIGKILL)
            os.wait4(-1, 0)
        for path in filter(os.path.isdir, self._cgroups):
            os.rmdir(path)

    def _prepare(self) -> None:
        """While the asker is still busy: the view of a container without mounts, and what Python itself imports in
        `wait4` and, in the process of each container, in `execvpe`."""
        self._view([])
        import resource  # noqa: F401
        import warnings  # noqa: F401

    def _receive(self) -> bool:
        data = self.channel.recv(1 << 20)
        messages = list(self._decoder.feed(data))
        if any(message["op"] == "signal" for message in messages):
            self._measure()
        for message in messages:
            if message["op"] == "start":
                self._start(message)
            elif message["op"] == "scratch":
                self.scratch = message["path"]
            elif message["op"] == "forget":
                self._forget(message["mounts"])
            else:
                self._signal(message)
        return bool(data)

    def _measure(self) -> None:
        """Before a signal: a shell that is stopped ends without waiting for its program, whose use of CPU and
        memory is then in no process's account."""
        used = usage.measure()
        self._used |= {pid: used[pid] for pid in self.running if pid in used}

    def _start(self, message: "Message") -> None:
        if message["cgroup"]:
            self._cgroups.add(os.path.dirname(message["cgroup"]))
        # Opened now: the asker closes its own descriptors, which these paths name, when it hears of the start.
        stdio = _open_stdio(message)
        pid = _fork(message, self._view(message["mounts"]), stdio)
        for descriptor in {*stdio} if isinstance(stdio, list) else ():
            os.close(descriptor)
        self.running[pid] = message["id"]
        self._send(event="started", id=message["id"], pid=pid)

    def _signal(self, message: "Message") -> None:
        pids = [pid for pid, id in self.running.items() if id == message["id"]]
        reached = {pid for pid in pids if not is_exiting(pid)}
        self._signalled |= reached
        for pid in pids:
            kill_group(pid, message["signal"])
        self._send(event="signalled", id=message["id"], reached=bool(reached))

    def _view(self, mounts: "list[list[Any]]") -> linux_namespaces.View | OSError | None:
        own_proc = self._anchor is not None
        if not mounts and not own_proc:
            return None
        key = _view_key(mounts)
        if key not in self._views:
            try:
                self._views[key] = linux_namespaces.make_view(key, own_proc=own_proc)
            except OSError as error:
                self._views[key] = error  # written to the log of each container that asks for it
        return self._views[key]

    def _forget(self, mounts: "list[list[Any]]") -> None:
        view = self._views.pop(_view_key(mounts), None)
        if isinstance(view, linux_namespaces.View):
            view.close()

    def _reap(self) -> bool:
        """Whether a child of ours has ended."""
        ended = False
        for pid in iter(_next_ended, None):
            ended = True
            if pid in self.running:
                self._report_exit(pid, self.running.pop(pid))
            else:
                os.waitpid(pid, 0)
        return ended

    def _report_exit(self, pid: int, id: str) -> None:
        kill_group(pid, signal.SIGKILL)  # as in a container: the others end with the first process
        _, status, final = os.wait4(pid, 0)
        before = self._used.pop(pid, usage.ResourceUse())
        cpu = max(final.ru_utime + final.ru_stime, before.cpu)
        peak = max(final.ru_maxrss * 1024, before.memory)
        signalled = pid in self._signalled
        self._signalled.discard(pid)
        self._send(event="exited", id=id, code=_exit_code(status), cpu=cpu, peak=peak, signalled=signalled)

    def _kill_orphans(self) -> None:
        """Those of containers that have ended; a daemon of a running container stays."""
        running = set(self.running.values())
        for pid in children(also_of=self._anchor):
            if pid not in (self._anchor, *self.running) and owner(pid) not in running:
                kill_group(pid, signal.SIGKILL)

    def _send(self, **message: "Any") -> None:
        try:
            self.channel.sendall(encode(message))
        except OSError:
            return  # the asker is gone: the next read finds the end of the socket, and `end` follows


def _view_key(mounts: "list[list[Any]]") -> tuple[linux_namespaces.Mount, ...]:
    return tuple((source, target, bool(read_only)) for source, target, read_only in mounts)


def _open_stdio(message: "Message") -> list[int] | OSError:
    """Input, output and errors; both of the latter go to the log unless the message says otherwise."""
    try:
        if not message["stdio"]:
            log = os.open(message["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            return [os.open(os.devnull, os.O_RDONLY), log, log]
        modes = [os.O_RDWR] * 3 if message["tty"] else [os.O_RDONLY, os.O_WRONLY, os.O_WRONLY]
        pairs = zip(message["stdio"], modes, strict=True)
        return [os.open(path, mode | os.O_NOCTTY) for path, mode in pairs]
    except OSError as error:
        return error


def _fork(
    message: "Message", view: linux_namespaces.View | OSError | None, stdio: list[int] | OSError
) -> int:
    # A signal that arrives between fork and exec must wait for exec: our handlers are not the container's.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    supervisor, pid = os.getpid(), os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        return pid
    try:
        os.setsid()
        die_with(supervisor)
        _redirect(stdio, message["tty"])
        _exec(message, view)
    except OSError as error:
        os.write(2, f"tfyard: cannot start {message['argv'][0]}: {error.strerror or error}\n".encode())
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED)
    finally:
        os._exit(NOT_STARTED)


def _redirect(stdio: list[int] | OSError, tty: bool) -> None:
    if isinstance(stdio, OSError):
        raise stdio
    for target, descriptor in enumerate(stdio):
        os.dup2(descriptor, target)
    if tty:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _exec(message: "Message", view: linux_namespaces.View | OSError | None) -> None:
    """Turn this copy of the supervisor into the container's process."""
    if message["cgroup"]:
        with open(message["cgroup"], "w") as procs:
            procs.write(str(os.getpid()))
    for number in (signal.SIGCHLD, signal.SIGPIPE, *STOP_SIGNALS):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    if message["network"]:
        linux_namespaces.join_network(message["network"])
        capabilities.keep_for_containers()
    if isinstance(view, OSError):
        raise view
    if view is not None:
        view.join()
    if message["hostname"]:
        linux_namespaces.unshare(linux_namespaces.CLONE_NEWUTS)
        socket.sethostname(message["hostname"])
    try:
        os.chdir(message["cwd"])
    except OSError as error:
        raise OSError(error.errno, f"its working directory {message['cwd']}: {error.strerror}") from None
    os.execvpe(message["argv"][0], message["argv"], {**message["env"], MARK: message["id"]})


def _next_ended() -> int | None:
    """A child that has ended, not waited for yet: until it is, its process group can be found."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None


def _has_children() -> bool:
    """Reaps those that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _remove(directory: str) -> None:
    try:
        os.rmdir(directory)  # most are empty
    except FileNotFoundError:
        return
    except OSError:
        from shutil import rmtree  # takes longer to import than this process needs to end

        rmtree(directory, ignore_errors=True)


def main(fd: int, *, namespaces: bool, scratch: str) -> None:
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the asker decides what Ctrl-C means
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    supervisor = Supervisor(socket.socket(fileno=fd), namespaces=namespaces)
    supervisor.scratch = scratch
    try:
        supervisor.serve()
    finally:
        supervisor.end()
    _remove(supervisor.scratch)
    os._exit(0)  # nothing is left to do, and Python would take milliseconds for it
