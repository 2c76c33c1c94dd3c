"""Runs the tests that a version may change, and counts what came of them."""

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tfyard.errors import TfyardError
from tools.versions import PAGE, RESULTS, ROOT, Result, Subject

CLUSTER = ("controller", "remote", "dev", "cluster", "install", "--ignore-glob=*/controller/test_faults_*")
A_FEW = (
    *("controller/test_operator.py", "controller/test_process.py", "remote/submitting"),
    *("dev/test_lifecycle.py", "dev/test_services.py", "cluster/test_exec.py", "cluster/test_submission.py"),
)
TRAINING = ("e2e/test_run_tensorflow.py", "e2e/test_run_tf1.py", "e2e/test_lost_tasks.py", "logs")
RUNS: dict[Subject, tuple[tuple[str, ...], ...]] = {
    "kubernetes": (("-m", "cluster and not long and not tensorflow", *CLUSTER),),
    "python": (
        ("-m", "not long and not cluster and not tensorflow", ".", "--ignore=tests/dashboard"),
        ("-m", "cluster and not long and not tensorflow", *A_FEW),
    ),
    "tensorflow": (("-m", "", *TRAINING),),
}
"""What pytest is given. A version takes minutes, so what it can hardly change is left out: the operator under
faults, and pages in a browser."""


class NotRun(TfyardError):
    """The tests did not come to their end, so nothing is known."""


def run(subject: Subject, version: str, python: Path, environ: Mapping[str, str]) -> Result:
    """Runs the tests of the commit that is checked out, with this interpreter and these variables."""
    passed = skipped = 0
    failed: list[str] = []
    for words in RUNS[subject]:
        for case in _cases(python, words, environ):
            name = f"{case.get('classname', '')}.{case.get('name', '')}"
            if any(case.find(tag) is not None for tag in ("failure", "error")):
                failed.append(name)
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
    return Result(
        version=version,
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        passed=passed,
        skipped=skipped,
        failed=tuple(dict.fromkeys(failed)),
    )


def _cases(python: Path, words: tuple[str, ...], environ: Mapping[str, str]) -> list[ElementTree.Element]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        option, marks, *rest = words
        paths = [word if word.startswith("--") else f"tests/{word}" for word in rest]
        command = [str(python), "-m", "pytest", "-n", "2", "--dist", "loadgroup", f"--junit-xml={report}"]
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, **environ}
        done = subprocess.run([*command, option, marks, *paths], cwd=ROOT, env=env, check=False)
        if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            raise NotRun("pytest says above why it ran no tests, or not all")
        return list(ElementTree.parse(report).iter("testcase"))


def _commit() -> str:
    """The commit of the tree that is tested; results and their table may have changed since."""
    written = (f":!{each.relative_to(ROOT)}" for each in (RESULTS, PAGE))
    changed = _git("status", "--porcelain", "--", ".", *written)
    return _git("rev-parse", "--short=8", "HEAD") + (" with changes" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()
