"""The parent of processes that must not outlive the program that started them: containers, control planes.

It is a child of that program, its client. It notices the client's death, however sudden, by the end of their
socket; as a subreaper it adopts every orphan, however deep; then it kills all of them and ends. (PR_SET_PDEATHSIG
in each process is not enough: grandchildren survive it, and in a client with threads it fires when the forking
*thread* ends. Here, with a single thread, it is set as well, in case the supervisor is killed.) With `namespaces`,
where the system allows them, the processes are in a PID namespace that ends with it: see linux_namespaces.py.

`main(fd, ...)` exchanges messages (see messages.py) over the socket `fd`:
    in   {"op": "start", "id", "argv", "env", "cwd", "log", "mounts", "files", "cgroup", "network"}
         with "stdio": three paths that it opens instead of "log"; "tty": they are a terminal; "hostname": its own;
         "stdin": it has the standard input of the supervisor
         {"op": "signal", "id", "signal"}
         {"op": "scratch", "path"}                        a directory to remove when the client is gone
         {"op": "forget", "mounts", "files"}              nothing else will be started with these mounts
    out  {"event": "unfinished", "id", "line"}            the line that a process has begun and not ended
         {"event": "ready", "namespaces"}
         {"event": "started", "id", "pid"}                its own program runs
         {"event": "signalled", "id", "reached"}          reached: it was still running
         {"event": "exited", "id", "code", "cpu", "peak", "signalled", "problem"}
                                                          problem: why it could not be started, if it could not
                                                          code: exit code, or 128 + signal; cpu: s; peak: bytes
                                                          signalled: it was still running when a signal was sent

Standard library only, and started without site packages (see launch.py): it must be up in
milliseconds and stay small.
"""

import fcntl
import os
import resource
import select
import signal
import socket
import sys
import termios
import time
import warnings  # noqa: F401 `execvpe` imports it: here once, and not in the process of each container

from tfyard.node import capabilities, linux_namespaces, usage
from tfyard.node.messages import MessageDecoder, encode
from tfyard.node.orphans import (
    MARK,
    adopt_orphans,
    children,
    die_with,
    is_exiting,
    kill_group,
    next_ended,
    owner,
    reap_children,
)
from tfyard.node.output import ProcessOutput, open_stdio

NOT_FOUND, NOT_STARTED = 127, 126
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SHOW_EVERY = 0.05
"""Seconds between two messages about unfinished lines, most of which are finished before."""

TYPE_CHECKING = False  # importing `typing` takes 9 ms
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]
    ViewKey = tuple[tuple[linux_namespaces.Mount, ...], tuple[str, ...]]


class Supervisor:
    def __init__(self, channel: socket.socket, *, namespaces: bool) -> None:
        self.channel = channel
        self.running: dict[int, str] = {}
        self._starting: dict[int, int] = {}
        """Pipes -> processes that report there that their programs run, or why they cannot."""
        self._problems: dict[int, str] = {}
        self._outputs: dict[int, ProcessOutput] = {}
        """Outputs by process."""
        self._streams: dict[int, ProcessOutput] = {}
        self._poll = select.poll()
        self._show_at = 0.0
        self._used: dict[int, usage.ResourceUse] = {}
        self._signalled: set[int] = set()
        self._cgroups: set[str] = set()
        self.scratch = ""
        """A directory that is removed when the client is gone; empty: none."""
        self._views: dict[ViewKey, linux_namespaces.MountView | OSError] = {}
        self._decoder = MessageDecoder()
        self._wake, wake = socket.socketpair()
        self._wake.setblocking(False)
        wake.setblocking(False)
        self._wake_end = wake  # kept: closing it would end the wake-ups
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._anchor = linux_namespaces.start_anchor(wake) if namespaces else None
        self._namespaces = self._anchor is not None or (namespaces and linux_namespaces.is_allowed())

    def serve(self) -> None:
        """Serve until the client is gone."""
        self._send(event="ready", namespaces=self._namespaces)
        self._prepare()
        channel, wake = self.channel.fileno(), self._wake.fileno()
        for descriptor in (channel, wake):
            self._poll.register(descriptor, select.POLLIN)
        while True:
            is_shown = all(output.is_shown for output in self._outputs.values())
            events = self._poll.poll(None if is_shown else SHOW_EVERY * 1000)
            readable = {descriptor for descriptor, _ in events}
            for stream in sorted(self._streams.keys() & readable):
                self._read(stream)
            for pipe in self._starting.keys() & readable:
                self._hear(pipe)
            if not is_shown:
                self._show_unfinished()
            if wake in readable:
                woken = self._wake.recv(4096)
                if self._reap() or linux_namespaces.ORPHAN_ENDED in woken:
                    self._kill_orphans()
            if channel in readable and not self._receive():
                return

    def _read(self, stream: int) -> None:
        try:
            is_open = self._streams[stream].read(stream)
        except BlockingIOError:
            return
        if not is_open:  # all writers have closed it; our end stays until the process ends
            del self._streams[stream]
            self._poll.unregister(stream)

    def _show_unfinished(self) -> None:
        if time.monotonic() < self._show_at:
            return
        self._show_at = time.monotonic() + SHOW_EVERY
        for pid, output in self._outputs.items():
            if not output.is_shown:
                self._send(event="unfinished", id=self.running[pid], line=output.unfinished())

    def end(self) -> None:
        """Kill until no child is left: the children of a killed child become ours, and are killed next."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for pid in filter(None, [*self.running, self._anchor]):
            kill_group(pid, signal.SIGKILL)
        while reap_children():
            for pid in children():
                kill_group(pid, signal.SIGKILL)
            os.wait4(-1, 0)
        for output in self._outputs.values():
            output.close()
        for path in filter(os.path.isdir, self._cgroups):
            os.rmdir(path)

    def _prepare(self) -> None:
        """Make the view of a container without mounts while the client is still busy, and raise the limit of open
        files: each process needs three."""
        self._view([], [])
        self._open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self._open_files[1],) * 2)

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
                self._forget(message["mounts"], message["files"])
            else:
                self._signal(message)
        return bool(data)

    def _measure(self) -> None:
        """Measure before a signal: a shell that is stopped ends without waiting for its program, whose use of CPU
        and memory is then in no process's account."""
        used = usage.measure()
        self._used |= {pid: used[pid] for pid in self.running if pid in used}

    def _start(self, message: "Message") -> None:
        if message["cgroup"]:
            self._cgroups.add(os.path.dirname(message["cgroup"]))
        # Opened now: the client closes its own descriptors, which these paths name, when it hears of the start.
        stdio, output = open_stdio(message)
        message["open_files"] = self._open_files
        hears, tells = os.pipe()  # closed by the exec of the program
        view, joined = self._view(message["mounts"], message["files"]), self._join_beside(message)
        pid = _fork(message, joined or view, stdio, tells)
        if isinstance(joined, linux_namespaces.MountView):
            joined.close()
        for descriptor in {tells, *(stdio if isinstance(stdio, list) else ())}:
            os.close(descriptor)
        if output is not None:
            self._outputs[pid] = output
            for stream in output.streams:
                self._streams[stream] = output
                self._poll.register(stream, select.POLLIN)
        self.running[pid] = message["id"]
        self._starting[hears] = pid
        self._poll.register(hears, select.POLLIN)

    def _hear(self, pipe: int) -> None:
        pid = self._starting.pop(pipe)
        self._poll.unregister(pipe)
        problem = os.read(pipe, 4096).decode(errors="replace")
        os.close(pipe)
        if problem:
            self._problems[pid] = problem
        else:
            self._send(event="started", id=self.running[pid], pid=pid)

    def _signal(self, message: "Message") -> None:
        pids = [pid for pid, id in self.running.items() if id == message["id"]]
        reached = {pid for pid in pids if not is_exiting(pid)}
        if message["signal"] not in (signal.SIGSTOP, signal.SIGCONT):  # these end nothing
            self._signalled |= reached
        for pid in pids:
            kill_group(pid, message["signal"])
        self._send(event="signalled", id=message["id"], reached=bool(reached))

    def _join_beside(self, message: "Message") -> linux_namespaces.MountView | OSError | None:
        """The view of the process that this one is started beside, which has its files already. In another one, a
        debugger would not find the program: /proc names paths of a namespace that only that process is in."""
        pid = next((pid for pid, id in self.running.items() if id == message["beside"]), None)
        if pid is None or pid in self._starting.values() or not message["files"]:
            return None
        message["files"] = []
        try:
            return linux_namespaces.open_view(pid)
        except OSError as error:
            return error  # it is ending

    def _view(
        self, mounts: "list[list[Any]]", files: "list[list[Any]]"
    ) -> linux_namespaces.MountView | OSError | None:
        own_proc = self._anchor is not None
        if not mounts and not files and not own_proc:
            return None
        key = _view_key(mounts, files)
        if key not in self._views:
            try:
                self._views[key] = linux_namespaces.make_view(*key, own_proc=own_proc)
            except OSError as error:
                self._views[key] = error  # written to the log of each container that asks for it
        return self._views[key]

    def _forget(self, mounts: "list[list[Any]]", files: "list[list[Any]]") -> None:
        view = self._views.pop(_view_key(mounts, files), None)
        if isinstance(view, linux_namespaces.MountView):
            view.close()

    def _reap(self) -> bool:
        """Reap the children that have ended; false if there were none."""
        ended = False
        for pid in iter(next_ended, None):
            ended = True
            if pid in self.running:
                for pipe in [each for each, starting in self._starting.items() if starting == pid]:
                    self._hear(pipe)
                self._report_exit(pid, self.running.pop(pid))
            else:
                os.waitpid(pid, 0)
        return ended

    def _report_exit(self, pid: int, id: str) -> None:
        kill_group(pid, signal.SIGKILL)  # as in a container: the others end with the first process
        _, status, final = os.wait4(pid, 0)
        self._close_output(pid)
        before = self._used.pop(pid, usage.ResourceUse())
        cpu = max(final.ru_utime + final.ru_stime, before.cpu)
        peak = max(final.ru_maxrss * 1024, before.memory)
        causes = {"signalled": pid in self._signalled, "problem": self._problems.pop(pid, "")}
        self._signalled.discard(pid)
        self._send(event="exited", id=id, code=_exit_code(status), cpu=cpu, peak=peak, **causes)

    def _close_output(self, pid: int) -> None:
        output = self._outputs.pop(pid, None)
        if output is None:
            return
        for stream in output.streams:
            if self._streams.pop(stream, None):
                self._poll.unregister(stream)
        output.close()

    def _kill_orphans(self) -> None:
        """Kill orphans of containers that have ended; a daemon of a running container stays."""
        running = set(self.running.values())
        for pid in children(also_of=self._anchor):
            if pid not in (self._anchor, *self.running) and owner(pid) not in running:
                kill_group(pid, signal.SIGKILL)

    def _send(self, **message: "Any") -> None:
        try:
            self.channel.sendall(encode(message))
        except OSError:
            return  # the client is gone: the next read finds the end of the socket, and `end` follows


def _view_key(mounts: "list[list[Any]]", files: "list[list[Any]]") -> "ViewKey":
    mounted = tuple((source, target, bool(read_only)) for source, target, read_only in mounts)
    return mounted, tuple(target for _, target, _ in files)


def _fork(
    message: "Message",
    view: linux_namespaces.MountView | OSError | None,
    stdio: list[int] | OSError,
    tells: int,
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
        problem = f"cannot start {message['argv'][0]}: {error.strerror or error}"
        os.write(tells, problem.encode())
        os.write(2, f"tfyard: {problem}\n".encode())
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED)
    finally:
        os._exit(NOT_STARTED)


def _redirect(stdio: list[int] | OSError, tty: bool) -> None:
    if isinstance(stdio, OSError):
        raise stdio
    for target, descriptor in enumerate(stdio):
        os.dup2(descriptor, target)
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _exec(message: "Message", view: linux_namespaces.MountView | OSError | None) -> None:
    """Turn this copy of the supervisor into the container's process."""
    if message["cgroup"]:
        with open(message["cgroup"], "w") as procs:
            procs.write(str(os.getpid()))
    for number in (signal.SIGCHLD, signal.SIGPIPE, *STOP_SIGNALS):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    resource.setrlimit(resource.RLIMIT_NOFILE, message["open_files"])
    if message["network"]:
        linux_namespaces.join_network(message["network"])
        capabilities.keep_for_containers()
    if isinstance(view, OSError):
        raise view
    if view is not None:
        view.join()
    if message["files"]:
        linux_namespaces.bind_files(message["files"])
    if message["hostname"]:
        linux_namespaces.unshare(linux_namespaces.CLONE_NEWUTS)
        socket.sethostname(message["hostname"])
    try:
        os.chdir(message["cwd"])
    except OSError as error:
        raise OSError(error.errno, f"its working directory {message['cwd']}: {error.strerror}") from None
    os.execvpe(message["argv"][0], message["argv"], {**message["env"], MARK: message["id"]})


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _remove(directory: str) -> None:
    try:
        os.rmdir(directory)  # most are empty
    except FileNotFoundError:
        return
    except OSError:
        from shutil import rmtree  # 7 ms, and most directories are empty by then

        rmtree(directory, ignore_errors=True)


def main(fd: int, *, namespaces: bool, scratch: str) -> None:
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the client decides what Ctrl-C means
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    supervisor = Supervisor(socket.socket(fileno=fd), namespaces=namespaces)
    supervisor.scratch = scratch
    try:
        supervisor.serve()
    finally:
        supervisor.end()
    _remove(supervisor.scratch)
