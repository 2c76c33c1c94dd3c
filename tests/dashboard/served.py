"""The page as users start it: the command as a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct


class Served(Struct):
    address: str
    """What the command has printed; it opens the page once."""
    process: "subprocess.Popen[str]"

    @property
    def root(self) -> str:
        return self.address.partition("?")[0]

    @property
    def host(self) -> str:
        return self.address.split("/")[2]

    @property
    def base(self) -> str:
        return "/" + self.address.split("/")[3]


@contextmanager
def served(folder: Path, *words: str, **env: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "tfyard", "dashboard", "--port", "0", *words]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            found = re.fullmatch(r"dashboard: (http://127\.0\.0\.1:\d+/\S+/\?token=\S+)\n", line)
            assert found, (line, process.stderr.read() if process.stderr and not line else "")
            yield Served(found[1], process)
        finally:
            ended = process.poll()
            process.terminate()
            errors = process.communicate(timeout=60)[1]
            assert "Traceback" not in errors, errors
            assert ended is None, f"it has ended by itself, with {ended}: {errors}"
