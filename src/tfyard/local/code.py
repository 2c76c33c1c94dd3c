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
    """Where the code is or will be. `base`: the folder of the job file; `target`: for what is fetched."""
    if code.kind != "folder":
        return target
    found = (base / code.source).resolve()
    if not found.is_dir():
        raise Usage(f"code: {found} is not a folder")
    return found


def fetch(code: Code, target: Path) -> None:
    """Of a git or http address. Whoever calls waits for it: see `interruptible`."""
    if code.kind == "git":
        _clone(code, target)
    else:
        from tfyard.local import archive  # slow to import, and rarely needed

        archive.fetch(code.source, target)


@contextmanager
def interruptible(source: str) -> Iterator[None]:
    """Signals to the main thread end what is done here. Handlers of its event loop would be called after it."""

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
    """What went wrong."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as git:
        try:
            _, errors = git.communicate(timeout=LONGEST_FETCH)
        except BaseException:
            _end(git.pid)
            with suppress(subprocess.TimeoutExpired):
                git.communicate(timeout=LONGEST_END)  # its helpers have the other end of this pipe, too
            raise
        return (errors.strip() or f"git ended with code {git.returncode}") if git.returncode else ""


def _end(pid: int) -> None:
    """git, and the helpers that it has started: they would go on without it. A session of its own would end them
    all, but keep git from asking for a password."""
    family = [pid]
    for parent in family:  # which grows
        family += [child for child in orphans.children(parent) if orphans.parent_of(child) == parent]
    for member in family:
        with suppress(ProcessLookupError):
            os.kill(member, signal.SIGTERM)
