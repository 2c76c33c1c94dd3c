"""A PID namespace around containers, and the process that holds it.

When the first process of a PID namespace ends, the kernel kills all others in it, however deep and however well
hidden. Here that process, the anchor, does nothing but end with the supervisor: no container outlives it, even if
the supervisor and tfyard are killed at the same instant. The supervisor itself stays outside, so that the process
ids that it reports are the ones that everybody else sees. Standard library only, because it runs between fork and
exec.
"""

import os
import signal
import socket

from tfyard.node import linux_namespaces, orphans

ORPHAN_ENDED = b"\0"
"""What the anchor sends when a child of its own has ended: the children of that one may be orphans now."""


def start(wake: socket.socket) -> int | None:
    """Put all further children of this process into a PID namespace. Returns the pid of its anchor, or None where
    that is not allowed. Orphans become children of the anchor, which reports their ends on `wake`."""
    if not _is_allowed():
        return None
    linux_namespaces.unshare(linux_namespaces.CLONE_NEWPID)
    # Blocked for good in the anchor: the handlers are the supervisor's, and no container may end it by a signal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    supervisor, pid = os.getpid(), os.fork()
    if pid == 0:
        _reap_orphans(wake, supervisor)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _is_allowed() -> bool:
    """Try all of it in a child: a process cannot undo `unshare` for its further children."""
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


def _reap_orphans(wake: socket.socket, supervisor: int) -> None:
    """Reap orphans as long as the supervisor lives."""
    try:
        orphans.die_with(supervisor)
        while True:
            signal.sigwait([signal.SIGCHLD])
            _reap()
            _tell(wake)
    finally:
        os._exit(0)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _tell(wake: socket.socket) -> None:
    try:
        wake.send(ORPHAN_ENDED)
    except BlockingIOError:
        return  # full: the supervisor has not read the earlier ones yet
