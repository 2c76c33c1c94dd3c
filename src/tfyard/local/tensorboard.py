"""TensorBoard beside a run, on the directory that the tasks write to."""

import sys
from importlib.util import find_spec
from pathlib import Path

from tfyard.errors import Usage
from tfyard.local.machine import base_env, machine
from tfyard.local.prepared import Prepared
from tfyard.model import tensorflow_container
from tfyard.node.containers import rewrite
from tfyard.node.processes import Command


def command(prepared: Prepared, port: int) -> Command:
    program = [sys.executable, "-m", "tensorboard.main", "--logdir", _log_directory(prepared)]
    argv = [*program, "--host", "127.0.0.1", "--port", str(port)]
    return Command(argv=argv, env=base_env(), cwd=str(Path.cwd()))


def check(prepared: Prepared) -> None:
    """Usage if it cannot be started."""
    if prepared.job.tensorboard is None:
        raise Usage("--tensorboard: the job does not say where its summaries are; add tensorboard: /out/logs")
    if find_spec("tensorboard") is None:
        raise Usage("--tensorboard: TensorBoard is not installed; pip install tensorboard")


def _log_directory(prepared: Prepared) -> str:
    """On this machine: the job names it by a mount path."""
    assert prepared.job.tensorboard is not None
    volumes = machine(prepared, Path.cwd()).volumes
    template = prepared.job.roles[0].template
    mounts = volumes.mounts({"spec": template["spec"]}, tensorflow_container(template), Path.cwd())
    return rewrite(prepared.job.tensorboard.log_dir, {target: source for source, target, _ in mounts})
