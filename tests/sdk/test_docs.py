"""docs/python.md says what is: its examples run, and type checkers accept them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT

pytestmark = pytest.mark.processes
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python(?: ([\w= .]+))?\n(.*?)```", re.DOTALL)
JOB = "name: train\nimage: example/train:1\ncode: .\nrun: python train.py\nworker: 1\n"


def blocks(kind: str) -> str:
    """The examples of one kind, as one program."""
    return "\n".join(text for found, text in BLOCK.findall(PAGE) if found == kind)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(blocks("file=train.py"))
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def python(*words: str, cwd: Path) -> str:
    env = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"} | {"HOME": str(cwd)}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_examples_run_and_print_what_the_page_says(folder: Path) -> None:
    (folder / "example.py").write_text(blocks(""))
    printed = python("example.py", cwd=folder)
    assert "worker-0 1 Step: 20, loss: 0.0115\n" in printed
    assert "\nSucceeded 0\n" in printed
    assert "memory: must be a quantity; for example 8Gi or 500M\ngpus: unknown field 'gpus'" in printed
    assert "could not convert string to float: 'fast'" in printed


@pytest.mark.long
def test_the_asynchronous_example_runs(folder: Path) -> None:
    (folder / "example.py").write_text(blocks("async"))
    assert "Succeeded\n" in python("example.py", cwd=folder)


@pytest.mark.long
def test_type_checkers_accept_the_examples(folder: Path) -> None:
    """All but the mistake that one of them shows."""
    program = blocks("").replace('memory="lots", gpus=1', 'memory="lots"')
    (folder / "example.py").write_text(program)
    (folder / "coroutines.py").write_text(blocks("async"))
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    words = ["-m", "mypy", "--strict", "--no-incremental" if not (ROOT / ".mypy_cache").exists() else cache]
    for name in ("example.py", "coroutines.py"):
        assert "Success" in python(*words, name, cwd=folder)


@pytest.mark.long
def test_type_checkers_find_mistakes(folder: Path) -> None:
    (folder / "example.py").write_text("import tfyard\ntfyard.Job('a.py', gpus=1)\ntfyard.absent\n")
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={ROOT / '.mypy_cache'}", "example.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert 'Unexpected keyword argument "gpus"' in done.stdout
    assert 'Module has no attribute "absent"' in done.stdout


@pytest.mark.long
def test_the_tests_of_the_page_pass(folder: Path) -> None:
    (folder / "conftest.py").write_text('pytest_plugins = ["tfyard.testing.training"]\n')
    (folder / "test_train.py").write_text(blocks("test"))
    assert "2 passed" in python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_train.py", cwd=folder)
