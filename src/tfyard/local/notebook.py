"""Jupyter beside a run: it has the addresses of all tasks, and asks for the password of the config."""

import os
import subprocess
import sys
from pathlib import Path

from tfyard.errors import Usage
from tfyard.local.machine import base_env
from tfyard.local.prepared import Prepared
from tfyard.node import SCRATCH
from tfyard.node.processes import Command
from tfyard.render.notebook import CLUSTER_CONFIG, CONFIG_FILE, config_text

_SERVERS = ("jupyterlab", "notebook", "jupyter_server")
"""Modules that start Jupyter, the most comfortable first."""
_KERNEL = "ipykernel"
_INSTALLED = "import sys; from importlib.util import find_spec; print(*filter(find_spec, sys.argv[1:]))"


def check(prepared: Prepared) -> None:
    """Usage if it cannot be started."""
    _installed(prepared)


def missing_kernel(prepared: Prepared) -> str:
    """What keeps notebooks from running; empty if nothing does."""
    python, modules = _installed(prepared)
    if _KERNEL in modules:
        return ""
    return f"Jupyter has no Python kernel for notebooks: {python} -m pip install {_KERNEL}"


def command(prepared: Prepared, port: int, directory: Path) -> Command:
    """`directory`: of the run. The hash of the password is in its scratch space, which goes with the run."""
    assert prepared.notebook is not None
    python, modules = _installed(prepared)
    folder = directory / SCRATCH / "jupyter"
    for path in (folder.parent, folder):  # with `parents`, the mode would be that of the last only
        path.mkdir(mode=0o700, exist_ok=True)
    (folder / CONFIG_FILE).write_text(config_text(prepared.notebook.hashed))
    env = {
        **base_env(prepared.python, directory),
        "JUPYTER_CONFIG_PATH": str(folder),
        CLUSTER_CONFIG: prepared.notebook.cluster_config,
    }
    address = ["--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--no-browser"]
    as_root = ["--allow-root"] if os.geteuid() == 0 else []
    argv = [python, "-m", modules[0], *address, *as_root, f"--ServerApp.root_dir={Path.cwd()}"]
    return Command(argv=argv, env=env, cwd=str(Path.cwd()))


def _installed(prepared: Prepared) -> tuple[str, list[str]]:
    """The tasks' interpreter, else tfyard's, and which of the modules it has."""
    for path in (prepared.python.path, sys.executable):
        line = [path, "-c", _INSTALLED, *_SERVERS, _KERNEL]
        modules = subprocess.run(line, capture_output=True, text=True, check=False).stdout.split()
        if set(modules) & set(_SERVERS):
            return path, modules
    raise Usage(f"--notebook: Jupyter is not installed; {prepared.python.path} -m pip install notebook")
