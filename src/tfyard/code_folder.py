"""Reads the folder of a job's code, for manifests that contain it."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tfyard.errors import Invalid, Usage
from tfyard.model import Job, Problem
from tfyard.render import CodeFile

SKIPPED = frozenset({".git", "__pycache__", ".tfyard", ".venv"})
MAX_READ = 16 << 20
"""Bytes; far beyond what fits into a ConfigMap, even compressed."""


def read(job: Job, base: Path, output: str | None) -> tuple[CodeFile, ...]:
    """The files of the job's code, if it is a folder. `base`: the folder of the job file; `output`: the file
    that is being written, which must not contain itself."""
    if job.code is None or job.code.kind != "folder":
        return ()
    folder = base / job.code.source
    try:
        is_folder = folder.is_dir()
    except OSError as error:
        raise Usage(f"code: {folder}: {error.strerror}") from None
    if not is_folder:
        raise Usage(f"code: {folder} is not a folder")
    ours = _identities(output)
    paths = sorted(path for path in _paths(folder) if _identity(path.stat()) not in ours)
    if outside := [path for path in paths if _leaves(path, folder)]:
        raise Invalid([_outside(path, folder) for path in outside])
    sizes = {path: path.stat().st_size for path in paths}
    if sum(sizes.values()) > MAX_READ:
        raise Invalid([_too_large(folder, sizes)])
    return tuple(_file(path, folder) for path in paths)


def _paths(folder: Path) -> Iterator[Path]:
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (path for name in names if (path := Path(directory, name)).is_file())


def _leaves(path: Path, folder: Path) -> bool:
    """A link to a file elsewhere, whose content would be published with the manifest."""
    return path.is_symlink() and not path.resolve().is_relative_to(folder.resolve())


def _identities(output: str | None) -> set[tuple[int, int]]:
    """Of the output file, also if it is the `> file` of a shell."""
    found = {_identity(Path(output).stat())} if output and Path(output).exists() else set()
    try:
        return found | {_identity(os.fstat(sys.stdout.fileno()))}
    except (OSError, ValueError):
        return found  # a stdout that is not a file cannot be in the folder


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _file(path: Path, folder: Path) -> CodeFile:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Usage(f"code: {path}: {error.strerror}") from None
    return CodeFile(path.relative_to(folder).as_posix(), data, os.access(path, os.X_OK))


def _outside(path: Path, folder: Path) -> Problem:
    text = f"the link {path.relative_to(folder)} leads out of the folder, to {path.resolve()}"
    return Problem(("code",), text, "copy the file into the folder, or remove the link")


def _too_large(folder: Path, sizes: dict[Path, int]) -> Problem:
    largest = sorted(sizes, key=lambda path: -sizes[path])[:3]
    names = ", ".join(f"{path.relative_to(folder)} ({sizes[path]:,} bytes)" for path in largest)
    text = f"the folder has {sum(sizes.values()):,} bytes, and a ConfigMap takes 1 MiB"
    fix = f"move data out of it to a volume, or give a git or http(s) address; the largest files: {names}"
    return Problem(("code",), text, fix)
