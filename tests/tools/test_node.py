"""`make test-node` where no node can run: it says everything that is missing, before anything is built."""

import os
import subprocess
import sys

import pytest

from tests.cli.running import ROOT
from tools.node import PROGRAMS, obstacles


def test_packages_that_are_missing_are_named_at_once() -> None:
    command = [sys.executable, "-m", "tools.node", "check"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PATH": "/nowhere"}, capture_output=True, text=True
    )
    packages = " ".join(sorted({*PROGRAMS.values()}))
    assert done.returncode == 1
    assert done.stderr.startswith("no node on this machine:\n")
    assert f"  programs are missing: apt-get install {packages}\n" in done.stderr


def test_who_is_not_root_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert "it needs root: namespaces, mounts and cgroups are made for it" in obstacles()
