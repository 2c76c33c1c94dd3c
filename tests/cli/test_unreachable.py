"""Every command about jobs, against clusters that are absent, slow or refuse: one clear line, in time."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import tfyard
from tests.cli.test_main import imported
from tfyard.kube import Access, Cluster, kubeconfig

COMMANDS = (
    ("get",),
    ("describe", "x"),
    ("events", "x"),
    ("wait", "x"),
    ("logs", "x"),
    ("top", "x"),
    ("metrics", "x"),
    ("doctor",),
)


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_server_that_does_not_answer_is_given_up_in_one_line(
    command: tuple[str, ...], silent: int, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text(kubeconfig.dump(Access(Cluster(server=f"http://127.0.0.1:{silent}"))))
    done = tfyard(*command, "--kubeconfig", "config", "--request-timeout", "0.3", cwd=tmp_path)
    said = done.out + done.err
    assert done.code == 1
    assert f"http://127.0.0.1:{silent}: no answer within 0.3 s" in said
    assert said.count("\n") == (2 if command == ("doctor",) else 1)


@pytest.mark.parametrize("command", COMMANDS[1:7], ids=lambda command: command[0])
def test_without_a_cluster_and_without_a_run_the_job_is_not_found(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    done = tfyard(*command, cwd=tmp_path, HOME=str(tmp_path), KUBECONFIG="", KUBERNETES_SERVICE_HOST="")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "run 'x' not found" in done.err
    assert "no cluster is configured" in done.err


LOCAL = [(*command, "--local") for command in COMMANDS[:7]]
THERE = [(*command, "--kubeconfig", "config") for command in COMMANDS]


@pytest.mark.processes
@pytest.mark.parametrize("words", [*LOCAL, *THERE], ids=" ".join)
def test_commands_that_ask_and_end_import_neither_asyncio_nor_aiohttp_nor_rich(
    words: tuple[str, ...], finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    assert not {"asyncio", "aiohttp", "rich", "jinja2"} & imported(*words)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of a job named x, and the kubeconfig of a cluster that is not there."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "x.py").write_text("print('Step: 1, loss: 0.5')")
    assert tfyard("run", "x.py", "-q", cwd=folder).code == 0
    (folder / "config").write_text(kubeconfig.dump(Access(Cluster(server="http://127.0.0.1:1"))))
    return folder
