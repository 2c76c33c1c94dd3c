"""How the tests of this room run commands: as users do, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"


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
