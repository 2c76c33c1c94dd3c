"""`--attach`: a task that the user starts, under a debugger for example, while the run waits for its end."""

import sys
from pathlib import Path
from shlex import join, quote

from tfyard.model import Manifest
from tfyard.node import SCRATCH
from tfyard.node.processes import ContainerCommand

_WAIT = """\
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback after Ctrl-C
result = pathlib.Path(sys.argv[1])
while not result.exists():
    time.sleep(.2)
code = int(result.read_text())
result.unlink()
sys.exit(code)
"""
"""The exit code is read once: if the task is restarted, the user starts it again."""


def script_path(directory: Path, task: str) -> Path:
    """Path of the script, which is removed with the Secrets of the run because it may contain some of them."""
    return directory / SCRATCH / f"attach-{task}.sh"


def waiting(container: Manifest, command: ContainerCommand, directory: Path, task: str) -> Manifest:
    """Writes the script that starts the task. The container waits until the user has run it, and ends with the
    same exit code."""
    script = script_path(directory, task)
    result = script.with_suffix(".exit")
    script.parent.mkdir(mode=0o700, exist_ok=True)
    script.touch(mode=0o700)  # it contains the whole environment
    script.write_text(_script(command, result))
    return {**container, "command": [sys.executable, "-c", _WAIT, str(result)], "args": []}


def _script(command: ContainerCommand, result: Path) -> str:
    """Script that sets environment and directory and starts the program. Its own arguments come before the
    program, so that `attach.sh gdb --args` debugs it."""
    own = {name: value for name, value in command.env.items() if name.isidentifier()}
    exports = "".join(f"export {name}={quote(value)}\n" for name, value in sorted(own.items()))
    new, path = quote(f"{result}.new"), quote(str(result))
    end = f'code=$?\n{{ echo "$code" > {new} && mv {new} {path}; }} 2>/dev/null\n'  # the run may be over
    return f'#!/bin/sh\n{exports}cd {quote(command.cwd)} || exit 1\n"$@" {join(command.argv)}\n{end}exit "$code"\n'
