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
        from tfyard.local import archive  # slow to import, and rarely needed

        archive.fetch(code.source, target)


def _clone(code: Code, target: Path) -> None:
    commands = [["git", "clone", "--quiet", "--", code.source, str(target)]]
    if code.ref:
        commands.append(["git", "-C", str(target), "checkout", "--quiet", code.ref, "--"])
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_FETCH, check=False)
        except FileNotFoundError:
            raise Usage(f"code: {code.source} needs git, which is not installed") from None
        except subprocess.TimeoutExpired:
            raise Usage(f"code: {code.source} was not fetched within {LONGEST_FETCH} s") from None
        if done.returncode:
            raise Usage(f"code: {code.source}: {done.stderr.strip()}")
