"""A command in a running task of a run on this machine: its environment, working directory and mounts."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from tfyard.errors import NotRunning
from tfyard.model.run_record import RunRecord
from tfyard.node import linux_namespaces
from tfyard.node.orphans import MARK, owner, parent_of, stat_fields

CANNOT_RUN, NOT_FOUND = 126, 127
"""Exit codes, as of a shell."""


def leader(record: RunRecord, task: str) -> int | None:
    """The process that is the task; None if it does not run."""
    if record.ended:
        return None
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208
        if _is_leader(pid):
            pod = (owner(pid) or "").partition("/")[0]
            if pod == f"{record.job}-{task}" and is_below(pid, record.pid):
                return pid
    return None


def is_below(pid: int, ancestor: int) -> bool:
    current: int | None = pid
    while current and current != ancestor:
        current = parent_of(current)
    return current == ancestor


def require_running(record: RunRecord, task: str) -> int:
    """Process of the task; raises NotRunning if there is none."""
    pid = leader(record, task)
    if pid is None:
        why = ": the run has ended" if record.ended else ""
        raise NotRunning(f"{task} of {record.name} is not running{why}")
    return pid


def number_inside(pid: int) -> int:
    """The number of a process as commands in its task see it, which may be in a PID namespace."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().split("\n")
    except OSError:  # it has ended
        return pid
    return next((int(line.split()[-1]) for line in lines if line.startswith("NSpid:")), pid)


def exec(record: RunRecord, task: str, argv: Sequence[str]) -> int:
    """Runs a command in a task with the standard streams of this process; returns its exit code."""
    return _run(require_running(record, task), argv)


def _is_leader(pid: int) -> bool:
    """Whether it leads a session, as the process of every container does."""
    fields = stat_fields(pid)
    return bool(fields) and int(fields[3]) == pid


def _run(pid: int, argv: Sequence[str]) -> int:
    """Ignores Ctrl-C, which also reaches the command in the same terminal, and waits until the command ends."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = os.fork()
        if child == 0:
            _become(pid, argv)
        return _wait(child)
    finally:
        signal.signal(signal.SIGINT, before)


def _environment(pid: int) -> dict[str, str]:
    """Environment without the mark of a container, by which the command would be killed with the task."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    pairs = [os.fsdecode(entry).partition("=") for entry in entries if entry]
    return {name: value for name, _, value in pairs if name != MARK}


def _become(pid: int, argv: Sequence[str]) -> None:
    """Enters the namespaces of the task in this child process, and starts the command as its child."""
    try:
        env, directory = _environment(pid), os.open(f"/proc/{pid}/cwd", os.O_PATH | os.O_CLOEXEC)
        linux_namespaces.enter_those_of(pid)
        os.fchdir(directory)
        command = os.fork()
        if command == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execvpe(argv[0], list(argv), env)
        os._exit(_wait(command))
    except OSError as problem:
        os.write(2, f"tfyard: {problem.filename or argv[0]}: {problem.strerror}\n".encode())
        os._exit(NOT_FOUND if isinstance(problem, FileNotFoundError) else CANNOT_RUN)


def _wait(pid: int) -> int:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code
