"""The versions that are tested: pins, interpreters, results, and the table of docs/install.md."""

import subprocess
import sys
from pathlib import Path

import pytest

from tfyard.controlplane.binaries import cache_folder, pinned_version
from tools.versions import PAGE, VERSIONS, Result, environments, load, page, pins, record
from tools.versions.environments import NotToBeHad
from tools.versions.runs import ROOT, RUNS

RESULT = Result(version="1.33.13", date="2026-11-19", commit="1e9a6535", passed=7, skipped=1, failed=())


def test_the_page_says_what_the_last_runs_said() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "| Kubernetes 1.33" in text
    assert text == page.written(text, load()), "run: python -m tools.versions page"


def test_each_result_is_of_a_commit_that_the_history_has() -> None:
    for result in (each for known in load().values() for each in known.values() if each.commit):
        words = ["git", "merge-base", "--is-ancestor", result.commit.partition(" ")[0], "HEAD"]
        found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert found.returncode == 0, f"{result}: run those tests again, or empty its commit"


def test_a_row_says_what_failed_and_what_was_never_run(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert load(file) == {}
    record("python", "3.12", RESULT, file)
    record("kubernetes", "1.34", RESULT, file)
    names = ("tests.a.test_b.test_it_is_so[x, y]@a group",)
    failed = Result(version="1.33.13", date="d", commit="", passed=7, skipped=0, failed=names)
    record("kubernetes", "1.33", failed, file)
    known = load(file)
    assert list(known) == ["kubernetes", "python"]
    assert list(known["kubernetes"]) == ["1.33", "1.34"]
    text = page.written("<!-- tools/versions -->\n<!-- end -->", known)
    assert "| Kubernetes 1.33.13 | **1 failed**, 7 passed | d, an earlier state |\n" in text
    assert text.endswith("\n\nWhat failed:\n\n- Kubernetes 1.33.13: `test_b` it is so\n<!-- end -->")
    assert "| Kubernetes 1.33.13 | 7 passed, 1 skipped | 2026-11-19, 1e9a6535 |\n" in text
    assert "| TensorFlow 2.16 | untested | |\n" in text


def test_each_kubernetes_has_pins_of_its_own_and_with_them_a_folder_of_the_cache() -> None:
    versions = VERSIONS["kubernetes"]
    assert [pinned_version(pins=pins(minor)).rpartition(".")[0] for minor in versions] == list(versions)
    assert len({cache_folder(pins=pins(minor)) for minor in versions}) == len(versions)
    assert cache_folder(pins=pins(versions[-1])) == cache_folder()


def test_an_interpreter_is_our_own_or_one_that_runs_and_says_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert environments.interpreter(own) == sys.executable
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.99: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    with pytest.raises(NotToBeHad, match=r"no Python 3\.99 here"):
        environments.interpreter("3.99")
    installed = tmp_path / "pyenv" / "versions" / "3.99.1" / "bin" / "python"
    installed.parent.mkdir(parents=True)
    installed.write_text("#!/bin/sh\necho 3.99\n")
    installed.chmod(0o755)
    assert environments.interpreter("3.99") == str(installed)


def test_what_is_run_is_there() -> None:
    paths = [word for runs in RUNS.values() for run in runs for word in run[2:] if not word.startswith("-")]
    assert [path for path in paths if not (ROOT / "tests" / path).exists()] == []
