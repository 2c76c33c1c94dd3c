"""Reads what only the client knows of a job, while something else is done: its code as git knows it, its user."""

import os
import pwd
import socket
import threading
from pathlib import Path

from tfyard.job_input import git
from tfyard.job_input.bounded_process import QuestionLimits
from tfyard.model import Code
from tfyard.model.origin import CodeState
from tfyard.model.secrecy import scrubbed

LONGEST, LONGEST_AFTER = 10.0, 2.0
"""Seconds for git, and those that the caller waits for it in the end."""


class CodeReading:
    """Begins at once, in a thread that the end of this process does not wait for: a file system may hang."""

    def __init__(self, code: Code | None, folder: Path) -> None:
        """`folder`: that of the job file, or of the script."""
        self._limits = QuestionLimits(LONGEST)
        self._result: tuple[CodeState, str] = CodeState(problem="reading the git tree took too long"), ""
        self._thread = threading.Thread(
            target=self._read, args=(code, folder), daemon=True, name="code reading"
        )
        self._thread.start()

    def _read(self, code: Code | None, folder: Path) -> None:
        if code is not None and code.kind != "folder":
            self._result = CodeState(remote=scrubbed(code.source), branch=code.ref), ""
        else:
            self._result = git.read(folder / code.source if code else folder, self._limits)

    def result(self) -> tuple[CodeState, str]:
        """The state of the tree, and its diff; waits a moment for them."""
        self._thread.join(LONGEST_AFTER)
        if self._thread.is_alive():
            self._limits.stop()  # what is known by now is recorded
            self._thread.join(LONGEST_AFTER)
        return self._result


def submitter() -> str:
    """The user of this machine."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"
