"""How the tests of this room run commands: as users do, in a process of its own."""

import errno
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


WITHOUT = """\
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in {modules}:
            return super().find_spec(name, path, target)

sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Without]
"""


def without(
    *modules: str, then: str = "sys.argv[0] = 'tfyard'; from tfyard.cli.main import main; main()"
) -> str:
    """A program for `python -c` that runs tfyard where these modules are not installed."""
    return f"{WITHOUT.format(modules=modules)}{then}"


class Result:
    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")
        assert "Traceback" not in self.err, self.err


def tfyard(*args: str | bytes | Path, cwd: Path | None = None, stdin: bytes = b"", **env: str) -> Result:
    command = [sys.executable, "-m", "tfyard", *args]
    full = {**os.environ, **env}
    return Result(subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, check=False, env=full))


def read_terminal(terminal: int) -> str:
    """All that was written to it, to its end: one read may return a part of it only."""
    said = b""
    try:
        while part := os.read(terminal, 1 << 16):
            said += part
    except OSError as error:  # nobody has the other end open any more
        if error.errno != errno.EIO:
            raise
    finally:
        os.close(terminal)
    return said.decode()
