"""The search for the control plane's binaries, and the error where there are none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfyard.controlplane import binaries
from tfyard.controlplane.binaries import build, obtain
from tfyard.controlplane.binaries.download import Mirrors
from tfyard.testing import MissingBinaries

NOBODY = Mirrors("http://127.0.0.1:1", "http://127.0.0.1:1")


def fake(folder: Path, version: str = "1.36.3") -> Path:
    """Programs that can only say their version: enough to be found."""
    folder.mkdir(parents=True)
    for name in ("etcd", "kube-apiserver"):
        (folder / name).write_text(f"#!/bin/sh\necho Kubernetes v{version}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has nothing: an empty cache, an empty PATH."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def test_a_machine_without_binaries_reports_how_to_get_them(nowhere: Path) -> None:
    with pytest.raises(MissingBinaries, match="run `make control-plane`"):
        binaries.locate()


def test_explicit_folder_beats_assets_beats_cache_beats_path(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = fake(nowhere / "bin")
    monkeypatch.setenv("PATH", f"{on_path}:/usr/bin:/bin")
    assert binaries.locate().folder == on_path
    cached = fake(binaries.cache_folder())
    assert binaries.locate().folder == cached
    assets = fake(nowhere / "assets", "1.30.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert binaries.locate().folder == assets
    explicit = fake(nowhere / "explicit")
    assert binaries.locate(explicit).folder == explicit


def test_another_version_on_path_is_passed_over_and_a_named_one_refused(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake(nowhere / "bin", "1.3.6")
    monkeypatch.setenv("PATH", f"{old}:/usr/bin:/bin")
    with pytest.raises(MissingBinaries, match=r"no etcd and kube-apiserver 1\.36 here"):
        binaries.locate()
    with pytest.raises(MissingBinaries, match=r"has Kubernetes 1\.3\.6, 1\.36 was asked for"):
        binaries.locate(old, "1.36")
    with pytest.raises(MissingBinaries, match="has no etcd and kube-apiserver"):
        binaries.locate(nowhere / "empty")
    (old / "etcd").chmod(0o600)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(old))
    with pytest.raises(MissingBinaries, match="bin, which KUBEBUILDER_ASSETS names, has no etcd that can be"):
        binaries.locate()
    (old / "kube-apiserver").write_text("exec format")
    with pytest.raises(MissingBinaries, match="kube-apiserver does not run here"):
        _ = binaries.Binaries(old).version


def test_the_cache_key_follows_the_pins() -> None:
    assert binaries.cache_folder().name.count("-") >= 2
    assert f"gitVersion=v{binaries.pinned_version()}" in build.build_flags(binaries.pinned_version())[-1]


def test_what_is_in_the_cache_is_not_obtained_again(nowhere: Path) -> None:
    fake(binaries.cache_folder())
    said: list[str] = []
    assert obtain.obtain(said.append, NOBODY) == binaries.cache_folder()
    assert said == []


def test_a_folder_that_was_named_is_not_replaced_by_another(nowhere: Path) -> None:
    said: list[str] = []
    with pytest.raises(MissingBinaries, match="has no etcd and kube-apiserver"):
        obtain.find_or_obtain(said.append, nowhere / "empty", NOBODY)
    assert said == []


def test_a_machine_without_go_and_without_a_network_reports_both(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(MissingBinaries, match=r"no `go` on PATH: .*tfyard\[control-plane-build\]"):
        obtain.obtain(print, NOBODY)
    assert not binaries.cache_folder().exists()


@pytest.mark.processes
@pytest.mark.parametrize(("ci", "code", "lines"), [("", 0, 1), ("true", 1, 2)], ids=["laptop", "CI"])
def test_without_binaries_cluster_tests_skip_with_one_line_and_fail_in_ci(
    nowhere: Path, ci: str, code: int, lines: int
) -> None:
    (nowhere / "conftest.py").write_text('pytest_plugins = ["tfyard.testing.fixtures"]\n')
    tests = "def test_one(control_plane): pass\n\ndef test_two(namespace): pass\n"
    (nowhere / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-rN", "-p", "no:cacheprovider", str(nowhere)]
    run = subprocess.run(
        command, env={**os.environ, "CI": ci}, cwd=nowhere, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == code
    assert run.stdout.count("no real control plane: ") == lines
    assert run.stdout.count("run `make control-plane`") == lines
