"""docs/python.md says what is: its examples run from the first to the last, and type checkers accept them.

Here they run without those about a cluster; tests/cluster/test_python.py runs all of them.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT

pytestmark = pytest.mark.processes
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'(?:<!-- examples: (\w+) -->\n)?```python(?: title="([\w.]+)")?\n(.*?)```', re.DOTALL)
JOB = "name: train\nimage: example/train:1\ncode: .\nrun: python train.py\nworker: 1\n"


def blocks(*kinds: str) -> str:
    """The examples of these kinds in the order of the page, as one program."""
    return "\n".join(text for kind, title, text in BLOCK.findall(PAGE) if (kind or title) in kinds)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return prepared(tmp_path)


def prepared(folder: Path) -> Path:
    """A folder with the files that the examples use."""
    (folder / "train.py").write_text(blocks("train.py"))
    (folder / "job.yaml").write_text(JOB)
    return folder


def python(*words: str, cwd: Path, kubeconfig: str = "") -> str:
    env = os.environ | {"HOME": str(cwd), "KUBECONFIG": kubeconfig}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed(folder: Path, program: str, kubeconfig: str = "") -> str:
    """What the examples print; what the page says of those without a cluster is in it."""
    (folder / "example.py").write_text(program)
    output = python("example.py", cwd=folder, kubeconfig=kubeconfig)
    assert "worker-0 1 Step: 20, loss: 0.0115\n" in output
    assert "\nSucceeded 0\n" in output
    assert "memory: must be a quantity; for example 8Gi or 500M\ngpus: unknown field 'gpus'" in output
    assert "could not convert string to float: 'fast'" in output
    assert output.endswith("\nSucceeded\n"), "the last example, with asyncio"
    return output


@pytest.mark.long
def test_the_examples_run_and_print_what_the_page_says(folder: Path) -> None:
    printed(folder, blocks("", "async"))


@pytest.mark.long
def test_type_checkers_accept_the_examples(folder: Path) -> None:
    """All but the mistake that one of them shows."""
    program = blocks("", "ports", "cluster", "async").replace('memory="lots", gpus=1', 'memory="lots"')
    (folder / "example.py").write_text(program)
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    words = ["-m", "mypy", "--strict", "--no-incremental" if not (ROOT / ".mypy_cache").exists() else cache]
    assert "Success" in python(*words, "example.py", cwd=folder)


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
