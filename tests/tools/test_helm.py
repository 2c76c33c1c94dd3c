"""The search for the real helm, and the error where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tfyard.controlplane.binaries import MissingBinaries, cache_folder
from tools import helm


def test_without_helm_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingBinaries, match="run `make helm`"):
        helm.locate()
    assert cache_folder("helm", helm.HERE) != cache_folder()


@pytest.mark.processes
def test_what_is_in_the_cache_is_not_built_again_and_gets_the_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = cache_folder("helm", helm.HERE) / "helm"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    command = [sys.executable, "-m", "tools.helm", "package", "here"]
    done = subprocess.run(
        command, env={**os.environ, "PATH": "/nonexistent:/bin"}, cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "package here\n")


@pytest.mark.processes
def test_without_helm_its_tests_fail_in_ci_and_say_what_to_do(tmp_path: Path) -> None:
    """Elsewhere they are skipped, by what also skips the tests without a control plane."""
    environment = {**os.environ, "CI": "true", "XDG_CACHE_HOME": str(tmp_path)}
    test = "tests/install/test_chart.py::test_lint_finds_nothing"
    command = [sys.executable, "-m", "pytest", "-rN", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "no helm here: run `make helm`" in done.stdout
