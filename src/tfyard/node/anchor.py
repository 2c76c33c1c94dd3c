"""A PID namespace around a run's tasks, and the process that it hangs on.

When the first process of a PID namespace ends, the kernel kills all others, however deep and however well hidden.
That process does nothing here but end with the supervisor: no task outlives it, not even if the supervisor and
tfyard are killed in the same instant. The supervisor itself stays outside, so that the process ids that it tells
are those which everybody else sees. As fork and exec are near, it uses nothing but the standard library.
"""

import contextlib
import ctypes
import os
import signal
import socket

from tfyard.node import linux_namespaces, orphans

PR_SET_PDEATHSIG = 1
ORPHAN_ENDED = b"\0"
"""What the anchor says: those whom the dead one had may be orphans now."""


def drop(wake: socket.socket) -> int | None:
    """Have all further children live in a namespace of their own. Returns the process that it hangs on, or None
    where that is not allowed. Orphans become its children, and of their ends it tells at `wake`."""
    if not _is_allowed():
        return None
    linux_namespaces.unshare(linux_namespaces.CLONE_NEWPID)
    # Blocked for good in the anchor: the handlers are not its own, and whatever a task sends it, it stays.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    supervisor, pid = os.getpid(), os.fork()
    if pid == 0:
        _hold(wake, supervisor)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _is_allowed() -> bool:
    """Try all of it, in a child: a process whose children live elsewhere cannot take that back."""
    pid = os.fork()
    if pid == 0:
        _try()
    return os.waitpid(pid, 0)[1] == 0


def _try() -> None:
    try:
        linux_namespaces.unshare(linux_namespaces.CLONE_NEWPID)
        linux_namespaces.make_view(linux_namespaces.PROBE, own_proc=True)
    except OSError:
        os._exit(1)
    os._exit(0)


def _hold(wake: socket.socket, supervisor: int) -> None:
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # It may have died before. getppid() is 0 for a parent outside, but /proc is still the outer one.
        while orphans.parent("self") == supervisor:
            signal.sigwait([signal.SIGCHLD])
            _reap()
            with contextlib.suppress(BlockingIOError):  # full: the supervisor has yet to look anyway
                wake.send(ORPHAN_ENDED)
    finally:
        os._exit(0)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
