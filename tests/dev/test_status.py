"""What the commands tell of a box that is in trouble."""

import socket
from pathlib import Path

import pytest

from tfyard.dev import status
from tfyard.dev.folder import BoxFolder, Settings
from tfyard.dev.journal import Journal
from tfyard.kube import Access, Cluster, User, kubeconfig


@pytest.fixture
def folder(tmp_path: Path) -> BoxFolder:
    folder = BoxFolder.of("box", {"XDG_STATE_HOME": str(tmp_path)})
    folder.prepare(Settings(name="box"))
    return folder


def test_a_box_whose_apiserver_is_silent_is_not_ready(
    folder: BoxFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "ANSWER_TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        folder.kubeconfig.write_text(kubeconfig.dump(Access(Cluster(server), User(token="t")), "box"))
        found = status.cluster(folder)
    assert (found["phase"], found["message"]) == ("not ready", "the apiserver does not answer within 0 s")


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
    state = folder.state()
    assert state is not None
    assert (state.phase, state.restarts) == ("ready", {"etcd": 1}), "what was not written is written later"
