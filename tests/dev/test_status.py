"""What the commands report about a cluster in trouble."""

import os
import socket
from pathlib import Path

import pytest

from tfyard.dev import status
from tfyard.dev.folder import BoxFolder, ReportedState, UpOptions
from tfyard.dev.journal import Journal
from tfyard.kube import Access, ClusterEntry, User, kubeconfig


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoxFolder:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = BoxFolder.of("box")
    folder.prepare(UpOptions(name="box"))
    return folder


def test_a_cluster_whose_apiserver_does_not_answer_is_not_ready(
    folder: BoxFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "ANSWER_TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        folder.kubeconfig.write_text(kubeconfig.dump(Access(ClusterEntry(server), User(token="t")), "box"))
        found = status.cluster(folder)
    assert (found["phase"], found["message"]) == ("not ready", "the apiserver does not answer within 0 s")


def test_a_component_that_has_ended_is_reported_until_it_runs_again(
    folder: BoxFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the last that it said: one that cannot be started at all is never counted as restarted."""
    monkeypatch.setattr(status, "ANSWER_TIMEOUT", 0.1)
    nobody = Access(ClusterEntry("http://127.0.0.1:9"), User(token="t"))
    folder.kubeconfig.write_text(kubeconfig.dump(nobody, "box"))
    journal = Journal(folder)
    journal.ready()
    journal.ended("operator", "the CRD is missing")
    found = status._awake(folder, os.getpid(), stored(folder))
    assert (found.phase, found.message) == (
        "not ready",
        "operator has ended, and is started again: the CRD is missing",
    )
    journal.restarted("operator")
    assert "operator" not in status._awake(folder, os.getpid(), stored(folder)).message


def stored(folder: BoxFolder) -> ReportedState:
    state = folder.state()
    assert state is not None
    return state


def test_a_state_that_cannot_be_written_ends_nothing(
    folder: BoxFolder, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(folder)
    in_the_way = folder.path / "state.json.new"
    in_the_way.mkdir()
    journal.restarted("etcd")
    assert "its state cannot be written" in caplog.text
    in_the_way.rmdir()
    journal.ready()
    state = stored(folder)
    assert (state.phase, state.restarts) == ("ready", {"etcd": 1}), "what was not written is written later"
