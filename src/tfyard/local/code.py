"""The job's code on this machine: a folder is used where it is, a git or http address is fetched for the run."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from tfyard.errors import Interrupted, Usage
from tfyard.model import Code
from tfyard.node import orphans

LONGEST_FETCH, LONGEST_END = 600, 5


def folder(code: Code, base: Path, target: Path) -> Path:
    """Folder in which the code is or will be. `base`: that of the job file; `target`: for fetched code."""
    if code.kind != "folder":
        return target
    path = (base / code.source).resolve()
    if not path.is_dir():
        raise Usage(f"code: {path} is not a folder")
    return path


def fetch(code: Code, target: Path) -> None:
    """Fetches code from a git or http address. The call blocks: see `interruptible`."""
    if code.kind == "git":
        _clone(code, target)
    else:
        from tfyard.local import archive  # 20 ms with http and tarfile, and most code is a folder

        archive.fetch(code.source, target)


@contextmanager
def interruptible(source: str) -> Iterator[None]:
    """Signals interrupt the block at once; handlers of the event loop would be called only after it."""

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise Interrupted(f"{source} was not fetched: the run was interrupted; nothing was started")

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {n: signal.signal(n, stop) for n in numbers if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _clone(code: Code, target: Path) -> None:
    commands = [["git", "clone", "--quiet", "--", code.source, str(target)]]
    if code.ref:
        commands.append(["git", "-C", str(target), "checkout", "--quiet", code.ref, "--"])
    for command in commands:
        try:
            errors = _git(command)
        except FileNotFoundError:
            raise Usage(f"code: {code.source} needs git, which is not installed") from None
        except subprocess.TimeoutExpired:
            raise Usage(f"code: {code.source} was not fetched within {LONGEST_FETCH} s") from None
        if errors:
            raise Usage(f"code: {code.source}: {errors}")


def _git(command: list[str]) -> str:
    """Runs git; its error message, or an empty string if it succeeded."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as git:
        try:
            _, errors = git.communicate(timeout=LONGEST_FETCH)
        except BaseException:
            _end(git.pid)
            with suppress(subprocess.TimeoutExpired):
                git.communicate(timeout=LONGEST_END)  # git's helpers have the other end of this pipe, too
            raise
        return (errors.strip() or f"git ended with code {git.returncode}") if git.returncode else ""


def _end(pid: int) -> None:
    """Ends git and the helpers that it has started, which would go on without it. In a session of its own, git
    could be ended with all of them, but could not ask for a password."""
    family = [pid]
    for parent in family:  # the list grows
        family += [child for child in orphans.children(parent) if orphans.parent_of(child) == parent]
    for member in family:
        with suppress(ProcessLookupError):
            os.kill(member, signal.SIGTERM)
