"""Installs the real MLflow from PyPI, once, into an environment of its own in the cache: it and TensorFlow want
other versions of the same packages.

    python -m tools.mlflow

`requirements.txt` beside this file pins its version.
"""

import fcntl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tfyard.controlplane.binaries import MissingBinaries, cache_folder

PINS = Path(__file__).parent / "requirements.txt"
DONE = "installed"
"""File in the environment, written last."""


def pinned_version() -> str:
    return PINS.read_text().strip().partition("==")[2]


def folder() -> Path:
    major, minor = sys.version_info[:2]
    return cache_folder("mlflow").parent / f"{pinned_version()}-python{major}.{minor}"


def locate() -> Path:
    """The interpreter of the environment: `PYTHON -m mlflow server`."""
    if not (folder() / DONE).exists():
        raise MissingBinaries("no MLflow here: run `make mlflow` (some 850 MB, once)")
    return folder() / "bin" / "python"


def install(say: Callable[[str], None]) -> Path:
    target = folder()
    target.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once would write the same files
        if not (target / DONE).exists():
            say(f"==> MLflow {pinned_version()} into {target}, once (some 850 MB)")
            subprocess.run([sys.executable, "-m", "venv", target], check=True)
            pip = [
                target / "bin" / "python",
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ]
            subprocess.run([*pip, "-r", PINS], check=True)
            (target / DONE).touch()
    return locate()
