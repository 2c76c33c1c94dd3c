"""Helpers that call the commands and read their output."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tfyard.cli.main import main

Manifest = dict[str, Any]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
COMPAT = ROOT / "compat"
JOBS = HERE / "jobs"
GOLDEN = ROOT / "tests" / "golden" / "render"


class Done(NamedTuple):
    """A finished command: its exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[Manifest]:
        assert self.code == 0, self.err
        return documents(self.out)


def tfyard(*arguments: str | Path, cwd: Path | None = None, text: str = "") -> Done:
    """Runs the command in this process, which is ten times faster than a new one."""
    out, err, before = io.StringIO(), io.StringIO(), (sys.argv, sys.stdin, Path.cwd())
    sys.argv, sys.stdin = ["tfyard", *map(str, arguments)], io.TextIOWrapper(io.BytesIO(text.encode()))
    os.chdir(cwd or before[2])
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.argv, sys.stdin = before[:2]
        os.chdir(before[2])
    return Done(code, out.getvalue(), err.getvalue())


def python(*arguments: str | Path, cwd: Path | None = None, text: str = "") -> Done:
    command = [sys.executable, *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(
        command,
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def documents(text: str) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(text) if document is not None]


def of_kind(objects: list[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in objects if manifest["kind"] == kind]


def named(objects: list[Manifest], kind: str, name: str) -> Manifest:
    (only,) = [manifest for manifest in of_kind(objects, kind) if manifest["metadata"]["name"] == name]
    return only
