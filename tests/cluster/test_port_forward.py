"""`tfyard port-forward` to tasks of a job."""

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.clusters import until
from tests.cluster.jobs import Jobs

pytestmark = pytest.mark.cluster
ECHO = """
import os, socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        word = self.request.recv(100)
        self.request.sendall(word.upper())
        if word == b"end":
            os._exit(0)
socketserver.ThreadingTCPServer.allow_reuse_address = True
with socketserver.ThreadingTCPServer(("", 7000), Echo) as server:
    server.serve_forever()
"""
JOB = """
name: first
image: example/train:1
code: .
run: [python, echo.py]
worker: 2
"""


@pytest.fixture
def first(jobs: Jobs) -> Jobs:
    (jobs.folder / "echo.py").write_text(ECHO)
    jobs.submit(JOB)
    jobs.until_phase("first", "Running")
    return jobs


@contextmanager
def forward(jobs: Jobs, *words: str) -> "Iterator[tuple[subprocess.Popen[str], int]]":
    with jobs.start("port-forward", *words) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            match = re.fullmatch(r"Forwarding from 127.0.0.1:(\d+) -> \d+\n", line)
            assert match, line
            yield process, int(match[1])
        finally:
            process.kill()


def ask(port: int, text: bytes = b"hello") -> bytes:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        try:
            return b"".join(iter(lambda: connection.recv(100), b""))
        except ConnectionResetError:
            return b"reset"


def test_a_port_is_reached_over_a_replaced_pod_until_the_job_ends(first: Jobs) -> None:
    with forward(first, "first", "worker-0", ":7000") as (process, port):
        until(lambda: ask(port) == b"HELLO")
        assert [ask(port) for _ in range(5)] == [b"HELLO"] * 5
        first.kubectl("delete", "pod", "first-worker-0", "--now")
        until(lambda: ask(port) == b"HELLO")
        assert ask(port, b"end") in (b"END", b"reset")
        _, errors = process.communicate(timeout=60)
    told = errors.splitlines()
    assert any(line.startswith("tfyard: worker-0 has a new pod, first-worker-0") for line in told), told
    assert (process.returncode, told[-1]) == (0, "tfyard: first: Succeeded")
    over = first.tfyard("port-forward", "first", "worker-0", "80")
    assert (over.code, "has ended" in over.err) == (1, True)


def test_what_goes_wrong_is_told_once_and_ctrl_c_ends_it(first: Jobs) -> None:
    with forward(first, "first", "worker-0", ":9") as (process, port):
        assert {ask(port) for _ in range(3)} <= {b"", b"reset"}
        taken = first.tfyard("port-forward", "first", "worker-0", f"{port}:80")
        assert (taken.code, "Address already in use" in taken.err) == (1, True)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    (told,) = errors.splitlines()
    assert told.startswith("tfyard: worker-0: nothing listens on port 9: ")
