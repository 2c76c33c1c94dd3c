"""TensorBoard beside a run, on the directory that the tasks write to."""

import os
import subprocess
import sys
from pathlib import Path

from tfyard.errors import Usage
from tfyard.local.machine import machine
from tfyard.local.prepared import PreparedRun
from tfyard.model import tensorflow_container
from tfyard.node.containers import rewrite
from tfyard.node.processes import ContainerCommand
from tfyard.node.volumes import inside

_IS_INSTALLED = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorboard') is None)"


def command(prepared: PreparedRun, port: int) -> ContainerCommand:
    program = [_interpreter(prepared), "-m", "tensorboard.main", "--logdir", _log_directory(prepared)]
    argv = [*program, "--host", "127.0.0.1", "--port", str(port)]
    return ContainerCommand(argv=argv, env=dict(os.environ), cwd=str(Path.cwd()))


def check(prepared: PreparedRun) -> None:
    """Raises Usage if TensorBoard cannot be started."""
    if not prepared.settings.tensorboard and prepared.job.tensorboard is None:
        fix = "give it (--tensorboard DIR)"
        fix = fix if prepared.settings.is_script else f"{fix}, or add tensorboard: /out/logs"
        raise Usage(f"--tensorboard: the job does not say where its summaries are; {fix}")
    _interpreter(prepared)


def has_tensorboard(python: str) -> bool:
    return subprocess.run([python, "-c", _IS_INSTALLED], capture_output=True, check=False).returncode == 0


def _interpreter(prepared: PreparedRun) -> str:
    """Interpreter that has TensorBoard: that of the tasks, else tfyard's."""
    for path in (prepared.python.path, sys.executable):
        if has_tensorboard(path):
            return path
    raise Usage(
        f"--tensorboard: TensorBoard is not installed; {prepared.python.path} -m pip install tensorboard"
    )


def _log_directory(prepared: PreparedRun) -> str:
    """Directory of the summaries on this machine; the job names it by a mount path."""
    board = prepared.job.tensorboard
    asked = prepared.settings.tensorboard or (board.log_dir if board else "")
    here, template = machine(prepared, Path.cwd()), prepared.job.roles[0].template
    directories = {}
    for mount in tensorflow_container(template).get("volumeMounts") or ():
        (volume,) = (each for each in template["spec"]["volumes"] if each["name"] == mount["name"])
        if kept := here.sources.directory(volume) or (volume.get("hostPath") or {}).get("path"):
            directories[str(mount["mountPath"])] = str(inside(Path(kept), str(mount.get("subPath") or "")))
    if here.code is not None:
        directories[here.code.at] = str(here.code.folder)
    return rewrite(asked, directories)
