"""The cluster's context is added to a kubeconfig of the user and removed again; everything else in it stays."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tfyard.controlplane.binaries import locate
from tfyard.dev import lifecycle
from tfyard.dev.lifecycle import KubeconfigBusy, add_context, remove_context
from tfyard.errors import TfyardError
from tfyard.kube import Access, ClusterEntry, User, kubeconfig

OURS = kubeconfig.dump(Access(ClusterEntry("https://127.0.0.1:1"), User(token="t")), "tfyard-dev")
THEIRS = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {},
    "clusters": [{"name": "work", "cluster": {"server": "https://work.example"}}],
    "users": [{"name": "me", "user": {"exec": {"command": "login", "apiVersion": "v1"}}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "current-context": "work",
}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(THEIRS))
    file.chmod(0o640)
    return file


def test_a_context_comes_and_goes(theirs: Path) -> None:
    assert add_context(theirs, OURS) == "work"
    merged = yaml.safe_load(theirs.read_text())
    assert merged["current-context"] == "tfyard-dev"
    assert [entry["name"] for entry in merged["contexts"]] == ["work", "tfyard-dev"]
    assert add_context(theirs, OURS) == "", "a second time changes nothing"
    assert yaml.safe_load(theirs.read_text()) == merged
    remove_context(theirs, "tfyard-dev", "work")
    assert yaml.safe_load(theirs.read_text()) == THEIRS
    assert theirs.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in theirs.parent.iterdir()] == ["config"]


def test_a_context_that_the_user_chose_meanwhile_stays_the_current_one(theirs: Path) -> None:
    add_context(theirs, OURS)
    merged = yaml.safe_load(theirs.read_text())
    theirs.write_text(yaml.safe_dump({**merged, "current-context": "work"}))
    remove_context(theirs, "tfyard-dev", "gone")
    assert yaml.safe_load(theirs.read_text())["current-context"] == "work"


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config"
    remove_context(file, "tfyard-dev", "")
    assert add_context(file, OURS) == ""
    assert file.stat().st_mode & 0o777 == 0o600
    remove_context(file, "tfyard-dev", "")
    assert yaml.safe_load(file.read_text())["contexts"] == []


def test_a_link_stays_a_link(theirs: Path) -> None:
    link = theirs.with_name("link")
    link.symlink_to(theirs)
    add_context(link, OURS)
    assert link.is_symlink()
    assert "tfyard-dev" in theirs.read_text()


def test_what_is_no_kubeconfig_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("- a list\n")
    with pytest.raises(TfyardError, match="is not a kubeconfig"):
        add_context(file, OURS)
    assert file.read_text() == "- a list\n"


def test_a_file_that_another_program_writes_is_waited_for(
    theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "LOCK_TIMEOUT", 0.1)
    (theirs.parent / "config.lock").touch()
    with pytest.raises(KubeconfigBusy, match="another program writes"):
        add_context(theirs, OURS)
    assert yaml.safe_load(theirs.read_text()) == THEIRS


@pytest.mark.cluster
def test_kubectl_reads_what_was_merged(theirs: Path) -> None:
    add_context(theirs, OURS)
    command = [str(locate().path("kubectl")), "config", "view", "-o", "json"]
    done = subprocess.run(
        command, env={**os.environ, "KUBECONFIG": str(theirs)}, capture_output=True, check=True
    )
    assert json.loads(done.stdout)["current-context"] == "tfyard-dev"
