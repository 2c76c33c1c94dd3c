"""A command in a running task of a run on this machine: its environment, working directory and mounts."""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import join

from tfyard.errors import TfyardError, Usage
from tfyard.node import linux_namespaces
from tfyard.node.orphans import MARK, owner, parent_of, stat_fields
from tfyard.overview.log_lines import chosen
from tfyard.overview.record import RunRecord

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


def exec(record: RunRecord, words: Sequence[str], argv: Sequence[str], *, every: bool) -> int:
    """In one task, on this terminal; or in one after the other. The first exit code that is not 0."""
    if record.ended:
        raise TfyardError(f"{record.name} has ended: a command needs a running task")
    meant = chosen(words, [task.name for task in record.tasks])
    if len(meant) > 1 and not every:
        raise Usage(f"the run has {len(meant)} such tasks: name one of {', '.join(meant)}, or use --all")
    codes = []
    for task in meant:
        pid = leader(record, task)
        if pid is None:
            print(f"tfyard: {task} is not running", file=sys.stderr)
            continue
        if every:
            print(f"tfyard: {task}: {join(argv)}", file=sys.stderr)
        codes.append(_run(pid, argv))
    if not codes:
        raise TfyardError(f"none of the chosen tasks of {record.name} is running")
    return next((code for code in codes if code), 0)


def _is_leader(pid: int) -> bool:
    """Of a session, as every container is."""
    fields = stat_fields(pid)
    return bool(fields) and int(fields[3]) == pid


def _run(pid: int, argv: Sequence[str]) -> int:
    """Keys such as Ctrl-C reach the command, which shares our terminal; we wait for what it makes of them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        child = os.fork()
        if child == 0:
            _become(pid, argv)
        return _wait(child)
    finally:
        signal.signal(signal.SIGINT, before)


def _environment(pid: int) -> dict[str, str]:
    """Without the mark of a container: it would be counted as a process of the task, and killed with it."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    pairs = [os.fsdecode(entry).partition("=") for entry in entries if entry]
    return {name: value for name, _, value in pairs if name != MARK}


def _become(pid: int, argv: Sequence[str]) -> None:
    """In a child, which enters the namespaces, and a child of its own, which is the command."""
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
