"""The `python` of the tasks: that of the user's shell, not necessarily the one that runs tfyard."""

import os
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from shlex import quote

from msgspec import Struct

from tfyard.errors import Usage

NAMES = ("python", "python3")


class Interpreter(Struct, frozen=True):
    path: str
    chosen_by: str

    def __str__(self) -> str:
        return f"{self.path} ({self.chosen_by})"


def _own_with_tensorflow() -> str | None:
    """The interpreter that runs tfyard, if TensorFlow is in its environment."""
    return sys.executable if PathFinder.find_spec("tensorflow") else None


def find(
    asked: str | None, env: Mapping[str, str], own: Callable[[], str | None] = _own_with_tensorflow
) -> Interpreter:
    """An active environment wins. Without one, tfyard may have been started by its path from an environment that
    was not activated (`.venv/bin/tfyard`): that environment is used if it has TensorFlow."""
    if asked is not None:
        return Interpreter(_by_option(asked, env), "--python")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if env.get(variable) and (path := _which("python", f"{env[variable]}/bin")):
            return Interpreter(path, variable)
    if (path := own()) is not None:
        return Interpreter(path, "tfyard's own")
    for name in NAMES:
        if path := _which(name, env.get("PATH", os.defpath)):
            return Interpreter(path, "the first on PATH")
    return Interpreter(sys.executable, "tfyard's own")


def _by_option(text: str, env: Mapping[str, str]) -> str:
    """Interpreter of --python: a path, the folder of an environment, or a name on PATH."""
    expanded = Path(text).expanduser()
    name = str(expanded / "bin" / "python" if expanded.is_dir() else expanded)
    path = _which(name, env.get("PATH", os.defpath))
    if path is None:
        raise Usage(
            f"--python {text}: not found; give the path of an interpreter, or the folder of its environment"
        )
    return path


def is_program(word: str) -> bool:
    """Whether a command may begin with this word; `python` always may."""
    return word in NAMES or _which(word, os.environ.get("PATH", os.defpath)) is not None


def _which(name: str, path: str) -> str | None:
    """Absolute path of a program, as of shutil.which, which is slow to import."""
    for folder in [""] if os.sep in name else path.split(os.pathsep):
        file = Path(folder, name).absolute()
        if os.access(file, os.X_OK) and file.is_file():  # is_file fails in a folder that may not be read
            return str(file)
    return None


def search_path(interpreter: Interpreter, path: str, shims: Path) -> str:
    """The PATH on which `python` is this interpreter. `shims`: where `write_shims` will put programs of that name,
    if the interpreter has another name in its own folder."""
    if _which("python", path) == interpreter.path:
        return path
    return f"{shims if _needs_shims(interpreter) else Path(interpreter.path).parent}{os.pathsep}{path}"


def write_shims(interpreter: Interpreter, shims: Path) -> None:
    """Writes shell scripts, because Python would not find its environment through a link."""
    if _needs_shims(interpreter):
        shims.mkdir(parents=True)
        for name in NAMES:
            (shims / name).write_text(f'#!/bin/sh\nexec {quote(interpreter.path)} "$@"\n')
            (shims / name).chmod(0o755)


def _needs_shims(interpreter: Interpreter) -> bool:
    """True of `/usr/bin/python3`, for example, if `/usr/bin/python` is missing or another interpreter."""
    beside = Path(interpreter.path).with_name("python")
    return not (beside.exists() and beside.samefile(interpreter.path))
