"""TensorBoard beside a run, on the directory that the tasks write to."""

import os
import subprocess
import sys
from pathlib import Path

from tfyard.errors import Usage
from tfyard.local.machine import machine
from tfyard.local.prepared import Prepared
from tfyard.model import tensorflow_container
from tfyard.node.containers import rewrite
from tfyard.node.processes import Command

_IS_INSTALLED = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorboard') is None)"


def command(prepared: Prepared, port: int) -> Command:
    program = [_interpreter(prepared), "-m", "tensorboard.main", "--logdir", _log_directory(prepared)]
    argv = [*program, "--host", "127.0.0.1", "--port", str(port)]
    return Command(argv=argv, env=dict(os.environ), cwd=str(Path.cwd()))


def check(prepared: Prepared) -> None:
    """Usage if it cannot be started."""
    if not prepared.settings.tensorboard and prepared.job.tensorboard is None:
        fix = "give it (--tensorboard DIR)"
        fix = fix if prepared.settings.is_script else f"{fix}, or add tensorboard: /out/logs"
        raise Usage(f"--tensorboard: the job does not say where its summaries are; {fix}")
    _interpreter(prepared)


def has_tensorboard(python: str) -> bool:
    return subprocess.run([python, "-c", _IS_INSTALLED], capture_output=True, check=False).returncode == 0


def _interpreter(prepared: Prepared) -> str:
    """The tasks' own, else tfyard's."""
    for path in (prepared.python.path, sys.executable):
        if has_tensorboard(path):
            return path
    raise Usage(
        f"--tensorboard: TensorBoard is not installed; {prepared.python.path} -m pip install tensorboard"
    )


def _log_directory(prepared: Prepared) -> str:
    """On this machine: the job names it by a mount path."""
    board = prepared.job.tensorboard
    asked = prepared.settings.tensorboard or (board.log_dir if board else "")
    here, template = machine(prepared, Path.cwd()), prepared.job.roles[0].template
    mounts = here.volumes.mounts({"spec": template["spec"]}, tensorflow_container(template), Path.cwd())
    directories = {target: source for source, target, _ in mounts}
    if here.code is not None:
        directories[here.code.at] = str(here.code.folder)
    return rewrite(asked, directories)
