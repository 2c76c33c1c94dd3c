"""Interpreters of this machine, and environments of tfyard with other versions of Python and TensorFlow."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tfyard.errors import TfyardError
from tfyard.model.callbacks import Say
from tools.versions import ROOT, environment


class NotToBeHad(TfyardError):
    """A version that this machine does not have, and cannot get."""


def interpreter(minor: str) -> str:
    """A Python of this version: our own, on PATH, pyenv's or uv's."""
    for candidate in _candidates(minor):
        if _says(candidate) == minor:
            return candidate
    raise NotToBeHad(f"no Python {minor} here: neither on PATH nor of pyenv or uv")


def _candidates(minor: str) -> Iterator[str]:
    yield sys.executable
    if found := shutil.which(f"python{minor}"):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{minor}.*/bin/python")))
    if uv := shutil.which("uv"):
        asked = [uv, "python", "find", "--no-python-downloads", minor]
        yield subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _says(python: str) -> str:
    """Its version, as it prints it; empty: it does not run. A shim of pyenv is there for every version."""
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def with_python(minor: str, say: Say) -> Path:
    """The interpreter of an environment with tfyard and what its tests need without TensorFlow."""
    packages = ["-e", f"{ROOT}[develop]", "tensorboard>=2.21,<2.22"]
    return _made(environment(f"python{minor}"), interpreter(minor), packages, say)


def with_tensorflow(minor: str, say: Say) -> Path:
    """The same, of this Python, with TensorFlow and its TensorBoard."""
    wanted = [f"tensorflow=={minor}.*", f"tensorboard=={minor}.*"]
    if minor in ("2.16", "2.17", "2.18", "2.19", "2.20"):
        wanted.append("setuptools<81")  # TensorBoard imports pkg_resources
    name = f"tensorflow{minor}-python{sys.version_info.major}.{sys.version_info.minor}"
    return _made(environment(name), sys.executable, ["-e", f"{ROOT}[develop]", *wanted], say)


def version_of(python: Path, package: str = "") -> str:
    """The version of an environment's Python, or of a package in it."""
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    command = [python, "-c", asked if package else "import platform; print(platform.python_version())"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _made(folder: Path, python: str, packages: list[str], say: Say) -> Path:
    made = folder / "bin" / "python"
    say(f"==> {folder.name}: {' '.join(packages)}")
    if not made.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(made), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *packages], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotToBeHad(f"{folder.name}: {done.stderr.strip().rpartition(chr(10))[2]}")
    return made
