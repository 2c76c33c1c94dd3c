"""Every command that speaks to a cluster, against those that are absent, slow or refuse: one clear line."""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from tests.cli.running import tfyard
from tests.cli.test_main import imported
from tfyard.cli import main
from tfyard.kube import Access, ClusterEntry, kubeconfig, sync

JOB_FILE = "name: x\nimage: example/train:1\nrun: python train.py\n"
WORDS = {"JOB": "x", "FILE": "job.yaml", "SCRIPT": "job.yaml", "TASK": "worker-0", "PORT": "8080"}
"""What an argument of this name gets; others get `x`."""
ARGUMENTS = {
    "cp": ("x:/out", "out"),
    **dict.fromkeys(("delete", "describe", "resume", "stop", "wait", "why"), ("x",)),
    "diff": ("job.yaml",),
    "exec": ("x", "worker-0", "--", "true"),
    "port-forward": ("x", "worker-0", "8080"),
    "restart": ("x", "worker-0"),
    "scale": ("x", "worker=2"),
    "submit": ("job.yaml",),
    "top": ("x",),
}
"""Of commands whose arguments cannot be told from their names."""


class Command(NamedTuple):
    path: tuple[str, ...]
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path[0]

    def with_options(self, *options: str) -> list[str]:
        """Before the arguments, because `--` ends options."""
        return [*self.path, *options, *self.arguments]


def commands(group: click.Group = main.tfyard, above: tuple[str, ...] = ()) -> Iterator[Command]:
    """All that take --request-timeout and end: the page says of a cluster what there is to say itself."""
    for name in group.list_commands(context := click.Context(group)):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*above, name))
        elif command and name != "dashboard" and any(p.name == "request_timeout" for p in command.params):
            yield Command((*above, name), ARGUMENTS.get(name, _arguments(command)))


def _arguments(command: click.Command) -> tuple[str, ...]:
    needed = [each for each in command.params if isinstance(each, click.Argument) and each.required]
    return tuple(WORDS.get(str(each.metavar or each.name).upper(), "x") for each in needed)


COMMANDS = list(commands())
every_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda each: "-".join(each.path))
ONE_JOB = [each for each in COMMANDS if each.arguments[:1] == ("x",)]
SHORT = ("get", "describe", "events", "wait", "logs", "top", "metrics", "why")


def test_the_registry_knows_them() -> None:
    assert {each.name for each in COMMANDS} >= {*SHORT, "doctor", "install", "uninstall"}


class Answer(NamedTuple):
    code: int
    out: str
    err: str


SHORTEST, LONGEST = 0.3, 60
"""Seconds that a server has to answer: one that will not, and one that will, on a machine however busy."""
Call = Callable[[str, Command, float], Answer]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """A command for a server, in this process: one of its own for each takes longer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sync, "BACKOFF", sync.Backoff(first=0.01, longest=0.01))
    (tmp_path / "job.yaml").write_text(JOB_FILE)

    def run(server: str, command: Command, timeout: float) -> Answer:
        (tmp_path / "config").write_text(kubeconfig.dump(Access(ClusterEntry(server=server))))
        options = ("--kubeconfig", "config", "--request-timeout", str(timeout))
        monkeypatch.setattr(sys, "argv", ["tfyard", *command.with_options(*options)])
        with pytest.raises(SystemExit) as ended:
            main.main()
        told = capsys.readouterr()
        return Answer(int(ended.value.code or 0), told.out, told.err)

    return run


def check(command: Command, answer: Answer, said: str) -> None:
    lines = (answer.out + answer.err).splitlines()
    code = 2 if command.name in ("diff", "wait", "why") else 1  # 1 says that something differs, or has failed
    assert (answer.code, said in "\n".join(lines)) == (code, True), answer
    if command.name == "doctor":
        assert lines[-1].startswith(f"{'':18} fix: "), answer
    elif command.name == "submit" and "forbidden" in said:
        assert "nothing was submitted" in answer.err, answer  # a line for each thing that may not be done
    else:
        assert (answer.out, len(lines), lines[0][:8]) == ("", 1, "tfyard: "), answer


@every_command
def test_a_server_that_does_not_answer_is_reported_in_one_line(command: Command, call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        check(command, call(server, command, SHORTEST), f"{server}: no answer within {SHORTEST} s")


@every_command
def test_an_unreachable_server_is_reported_in_one_line(command: Command, call: Call) -> None:
    server = "http://127.0.0.1:1"
    check(command, call(server, command, SHORTEST), f"{server}: Connection refused")


REFUSALS = {
    403: 'tfjobs.kubeflow.org is forbidden: User "jane" cannot do that in the namespace "default"',
    401: "Unauthorized",
    200: "<html>Please log in</html>",
}
"""The last is of a proxy, for people."""


class Refusing(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        code, text = int(self.path.split("/")[1]), REFUSALS[int(self.path.split("/")[1])]
        status = {"kind": "Status", "status": "Failure", "code": code, "message": text}
        body = (text if code == 200 else json.dumps(status)).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/html" if code == 200 else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    """The address of a server that refuses everybody, by the code that its path begins with."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (403, REFUSALS[403]),
        (401, "Unauthorized: the credentials of the kubeconfig are wrong"),
        (200, "answers with a web page"),
    ],
)
@every_command
def test_a_server_that_refuses_is_quoted_in_one_line(
    command: Command, code: int, said: str, refusing: str, call: Call
) -> None:
    check(command, call(f"{refusing}/{code}", command, LONGEST), said)


@pytest.mark.parametrize("command", ONE_JOB, ids=lambda each: each.name)
def test_without_a_cluster_and_without_a_run_the_job_is_not_found(command: Command, tmp_path: Path) -> None:
    words = command.with_options()
    done = tfyard(*words, cwd=tmp_path, HOME=str(tmp_path), KUBECONFIG="", KUBERNETES_SERVICE_HOST="")
    code = 2 if command.name in ("wait", "why") else 1
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert "run 'x' not found" in done.err
    assert "no cluster is configured" in done.err


_SHORT = [each for each in COMMANDS if each.name in SHORT]
LOCAL = [tuple(each.with_options("--local")) for each in _SHORT]
THERE = [tuple(each.with_options("--kubeconfig", "config")) for each in _SHORT]


@pytest.mark.processes
@pytest.mark.parametrize("words", [*LOCAL, *THERE, ("doctor", "--kubeconfig", "config")], ids=" ".join)
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
    (folder / "config").write_text(kubeconfig.dump(Access(ClusterEntry(server="http://127.0.0.1:1"))))
    return folder
