"""The job's code on this machine: a folder is used where it is, a git or http address is fetched for the run."""

import subprocess
from pathlib import Path

from tfyard.errors import Usage
from tfyard.model import Code

LONGEST_FETCH = 600


def folder(code: Code, base: Path, target: Path) -> Path:
    """Where the code is or will be. `base`: the folder of the job file; `target`: for what is fetched."""
    if code.kind != "folder":
        return target
    found = (base / code.source).resolve()
    if not found.is_dir():
        raise Usage(f"code: {found} is not a folder")
    return found


def fetch(code: Code, target: Path) -> None:
    """Fetch it if it is not a folder."""
    if code.kind == "git":
        _clone(code, target)
    elif code.kind == "http":
        _download(code.source, target)


def _clone(code: Code, target: Path) -> None:
    commands = [["git", "clone", "--quiet", code.source, str(target)]]
    if code.ref:
        commands.append(["git", "-C", str(target), "checkout", "--quiet", code.ref])
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_FETCH, check=False)
        except FileNotFoundError:
            raise Usage(f"code: {code.source} needs git, which is not installed") from None
        except subprocess.TimeoutExpired:
            raise Usage(f"code: {code.source} was not fetched within {LONGEST_FETCH} s") from None
        if done.returncode:
            raise Usage(f"code: {code.source}: {done.stderr.strip()}")


def _download(address: str, target: Path) -> None:
    import shutil  # both are slow to import, and rarely needed
    from urllib.request import urlopen

    archive, folder = target.with_suffix(".archive"), target.with_suffix(".new")
    try:
        with urlopen(address, timeout=60) as answer, archive.open("wb") as file:
            shutil.copyfileobj(answer, file)
    except (OSError, ValueError) as error:
        raise Usage(f"code: {address}: {error}") from None
    folder.mkdir()
    _unpack(archive, folder, address)
    archive.unlink()
    inside = list(folder.iterdir())  # archives of repositories hold one folder with everything in it
    (inside[0] if len(inside) == 1 and inside[0].is_dir() else folder).rename(target)


def _unpack(archive: Path, folder: Path, address: str) -> None:
    """Members that would be written elsewhere (`../`, absolute paths, links out of it) are refused."""
    import tarfile
    import zipfile

    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                file.extractall(folder)  # drops `..` and roots by itself
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile) as error:
        raise Usage(f"code: {address} is not a usable .zip or .tar archive: {error}") from None
