"""Installs the state of the project from which upgrades are tested, once, into an environment of its own.

    python -m tools.last_release

`commit` beside this file names it: until there is a release, a state of some days ago; then the last release.
"""

import fcntl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tfyard.controlplane.binaries import MissingBinaries, cache_folder

HERE = Path(__file__).parent
COMMIT = (HERE / "commit").read_text().strip()
DONE = "installed"
"""File in the environment, written last."""


class NoHistory(MissingBinaries):
    """This is no clone, or one without its history; that is no fault."""


def folder() -> Path:
    major, minor = sys.version_info[:2]
    return cache_folder("last-release").parent / f"{COMMIT[:12]}-python{major}.{minor}"


def locate() -> Path:
    """The interpreter of the environment: `PYTHON -m tfyard`."""
    if (folder() / DONE).exists():
        return folder() / "bin" / "python"
    if not _has_history():
        raise NoHistory(f"this is no clone with its whole history, which has {COMMIT[:12]}")
    raise MissingBinaries(f"no tfyard of {COMMIT[:12]} here: run `make last-release` (some 30 MB, once)")


def _has_history() -> bool:
    """Whether git should have the commit; if it has not even so, `git archive` says so."""
    command = ["git", "rev-parse", "--is-shallow-repository"]
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return False
    return done.stdout.strip() == "false"


def install(say: Callable[[str], None]) -> Path:
    target = folder()
    target.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once would write the same files
        if not (target / DONE).exists():
            say(f"==> tfyard of {COMMIT[:12]} into {target}, once (some 30 MB)")
            try:
                _install(target)
            except subprocess.CalledProcessError as problem:
                raise MissingBinaries(f"{problem}\n{problem.stderr or ''}".strip()) from problem
    return locate()


def _install(target: Path) -> None:
    _run(sys.executable, "-m", "venv", "--clear", str(target))
    pip = [str(target / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    with tempfile.TemporaryDirectory() as temporary:
        _run(*pip, f"{source(Path(temporary, 'source'))}[operator]")
    (target / DONE).touch()


def source(folder: Path) -> Path:
    """Its files, in this folder: also what is not installed, such as its chart."""
    if not folder.exists():
        folder.mkdir()
        archive = folder.with_suffix(".tar")
        _run("git", "-C", str(HERE.parents[1]), "archive", f"--output={archive}", COMMIT)
        _run("tar", "-xf", str(archive), "-C", str(folder))
    return folder


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
