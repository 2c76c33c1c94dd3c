"""Starts a run of this machine in a process of its own, and ends it with this program; and commands in its tasks.

The process is in a session of its own: Ctrl-C in a terminal or a notebook interrupts who waits, not the run.
"""

import atexit
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Invalid, TfyardError, Usage
from tfyard.node.launch import PACKAGES
from tfyard.sdk.messages import MESSAGES, Asked, Began, Refused, Rerun, Resume, Start, Told
from tfyard.sdk.place import Executed

LOG = logging.getLogger("tfyard")
PROGRAM = f"""import sys; sys.path.append({PACKAGES!r})
from tfyard.sdk.child import main; sys.exit(main())"""
EXECUTE = f"""import sys; sys.path.append({PACKAGES!r})
from pathlib import Path
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import tasks
run, task, *argv = sys.argv[1:]
sys.exit(tasks.exec(RunDirectory(Path(run)).load(), [task], argv, every=False))"""

_running: dict[subprocess.Popen[bytes], int] = {}
"""The processes that go on, and who started them: a fork of this program must leave them alone."""


def start(what: Start | Resume | Rerun, text: str = "") -> RunDirectory:
    """When it returns, the run has a record. `text`: the job file, if the target is `-`."""
    with tempfile.TemporaryFile() as errors:
        process = _spawn(errors)
        listener = threading.Thread(target=_listen, args=(process,), daemon=True)
        try:
            asked = msgspec.json.encode(Asked(what, os.getpid()))
            answer = _answer(process, asked + b"\n" + text.encode())
        except BaseException:
            process.terminate()
            raise
        finally:
            listener.start()
        if isinstance(answer, Began):
            return RunDirectory(Path(answer.directory))
        listener.join()
        if answer is not None:
            raise _error(answer)
        errors.seek(0)
        raise TfyardError(f"the run could not be started:\n{errors.read().decode(errors='replace').strip()}")


def _spawn(errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """What it is asked is not among its arguments: those can be read by every user of this machine."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],  # -P: no modules of the working directory
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )
    if not _running:
        atexit.unregister(stop_all)
        atexit.register(stop_all)
    _running[process] = os.getpid()
    return process


def _answer(process: subprocess.Popen[bytes], question: bytes) -> Began | Refused | None:
    """None: it has ended without one."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError), process.stdin as stdin:  # it may have ended, and says why
        stdin.write(question)
    for line in process.stdout:
        message = MESSAGES.decode(line)
        if not isinstance(message, Told):
            return message
        _log(message)
    return None


def _error(refused: Refused) -> TfyardError:
    if refused.problems:
        return Invalid(refused.problems, (), refused.name)
    return Usage(refused.message) if refused.is_usage else TfyardError(refused.message)


def _listen(process: subprocess.Popen[bytes]) -> None:
    """Until it has ended."""
    assert process.stdout is not None
    with process.stdout as stdout:
        for message in map(MESSAGES.decode, stdout):
            if isinstance(message, Told):
                _log(message)
    process.wait()
    _running.pop(process, None)


def _log(told: Told) -> None:
    LOG.log(logging.WARNING if told.level == "warning" else logging.INFO, "%s", told.text)


def execute(run: RunDirectory, task: str, argv: Sequence[str]) -> Executed:
    """A command in a running task. It is forked into the task's namespaces, which a program with threads cannot do
    by itself."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", EXECUTE, str(run.path), task, *argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    with process:
        try:
            out, errors = process.communicate()
        except BaseException:  # by Ctrl-C: the command goes, too
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Executed(process.returncode, out, errors)


def stop_all() -> None:
    """When this program ends: each run is asked to stop, as by Ctrl-C, and has its tasks' grace for that."""
    own = [process for process, owner in _running.items() if owner == os.getpid()]
    for process in own:
        process.terminate()
    for process in own:
        process.wait()
