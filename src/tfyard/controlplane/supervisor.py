"""Run one command that cannot outlive whoever asked for it: `supervisor.py [--scratch DIR] COMMAND...`

The asker holds the other end of our standard input. However it ends, SIGKILL included, the kernel closes
that pipe, and end-of-file is our order to kill. PR_SET_PDEATHSIG in the command itself would not do: it
fires when the *thread* that forked ends, and a test run forks from worker threads. Here it is only the
second belt, for the case that somebody kills this supervisor, whose one forking thread is its main one.

We are also a subreaper: a daemon that the command leaves behind becomes our child instead of init's, so
we can find it and end it. Standard library only, and started by path: a supervisor must be up in
milliseconds, and must not import what it supervises.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> None:
    """Ask Linux; elsewhere there is no such call, and the process group below has to be enough."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def children() -> list[int]:
    """Our living children by their parent id in /proc, adopted ones included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended between the listing and the reading
        if int(after_name[1]) == os.getpid():
            found.append(int(stat.parent.name))
    return found


def kill_children(group: int) -> None:
    for pid in children() if sys.platform == "linux" else [-group]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # ended by itself, and the reaping below has not seen it yet


def end_all(group: int) -> None:
    """Kill and reap until nothing is left: each death may hand us orphans one level further down.

    Never blocking: the reporting thread reaps too, and may take the very death that we would wait for.
    """
    while True:
        kill_children(group)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        time.sleep(0.005)


def wait_for(pid: int) -> int:
    """The command's exit status as a shell would give it. Adopted orphans are reaped on the way."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def report_end(pid: int, pipe: int) -> None:
    """On a thread of its own, so that the main thread can wait for two things at once."""
    try:
        os.write(pipe, bytes([wait_for(pid)]))
    except ChildProcessError:
        os.close(pipe)  # the main thread was killing everything, and reaped it first


def wait_for_either(pid: int) -> int | None:
    """The command's exit status, or nothing if whoever asked for the command is gone."""
    ended, pipe = os.pipe()
    threading.Thread(target=report_end, args=(pid, pipe), daemon=True).start()
    ready, _, _ = select.select([0, ended], [], [])
    return None if 0 in ready else os.read(ended, 1)[0]


def start(argv: list[str]) -> int:
    command = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,  # our own standard output carries one line only: the command's process id
        start_new_session=True,
        preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
    )
    command.returncode = 0  # we reap by ourselves; without this its finalizer warns that it still runs
    return command.pid


def main(argv: list[str]) -> int:
    scratch = None
    if argv[:1] == ["--scratch"]:
        scratch, argv = argv[1], argv[2:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    pid = start(argv)
    print(pid, flush=True)
    try:
        code = wait_for_either(pid)
    finally:
        end_all(pid)
    if code is None and scratch:
        # Supervisors of one box share the folder: what a not yet killed neighbour still writes into it,
        # that neighbour's supervisor removes.
        shutil.rmtree(scratch, ignore_errors=True)
    return code or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
