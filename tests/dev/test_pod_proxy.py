"""Pods reach the outside by a proxy that works for pip, git and downloads."""

import signal
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.running import ROOT
from tests.node import boxes
from tfyard.controlplane.components import reserve_port
from tfyard.dev import pod_proxy
from tfyard.dev.pod_proxy import BadRequest
from tfyard.node.orphans import is_exiting

pytestmark = pytest.mark.processes

LARGE = 5 << 20


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = f"{self.path} {self.headers.get('Host', '')} {self.headers.get('Connection', '')}"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * LARGE if self.path == "/large" else text.encode())

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[str]:
    """On the machine's loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_pod_reaches_the_machine_through_the_proxy_and_hears_why_it_cannot(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RES_OPTIONS", "timeout:1 attempts:1")  # where no name server answers
    user = boxes.USERS[-1]
    with reserve_port() as closed, boxes.folder_for(user) as folder:
        refused = f"127.0.0.1:{closed.getsockname()[1]}"
        pages, tunnels = boxes.run("way_out", folder, user, server, refused, module="tests.dev.boxes")
    assert pages == [f"/some/page?a=b {server} close"]
    assert tunnels[0] == f"/tunnel {server} "
    assert tunnels[1].startswith(f"Tunnel connection failed: 502 {refused}: ")
    assert "refused" in tunnels[1]
    assert tunnels[2].startswith("Tunnel connection failed: 502 no-such-host.invalid:80: ")


def test_sockets_from_outside_carry_large_answers(server: str) -> None:
    with boxes.folder_for(boxes.USERS[0]) as folder:
        assert boxes.run("half_closed", folder, boxes.USERS[0], server, module="tests.dev.boxes") > LARGE


def test_the_way_out_survives_the_end_of_either_process_and_the_end_of_both_is_reported(server: str) -> None:
    with boxes.folder_for(boxes.USERS[0]) as folder:
        heard = boxes.run("killed", folder, boxes.USERS[0], server, module="tests.dev.boxes")
    assert heard[:4] == ["connected"] * 4
    assert heard[4] == "the process that makes connections to the outside has ended"


def test_the_process_outside_ends_with_a_killed_cluster() -> None:
    user = boxes.USERS[0]
    with boxes.folder_for(user) as folder:
        argv = boxes.command("stay", folder, user, module="tests.dev.boxes")
        with subprocess.Popen(argv, cwd=ROOT) as box:
            boxes.until(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
            pid = int((folder / "pid").read_text())
            assert b"tfyard.dev.outside" in Path(f"/proc/{pid}/cmdline").read_bytes()
            box.send_signal(signal.SIGKILL)
        boxes.until(lambda: is_exiting(pid))


def test_the_machines_own_proxy_is_used_with_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://me:s%40crt@proxy.example:8080")
    monkeypatch.setenv("no_proxy", "intranet.example")
    head = pod_proxy.parse(b"CONNECT pypi.org:443 HTTP/1.1\r\nProxy-Connection: keep-alive\r\n\r\n")
    proxy = pod_proxy.machine_proxy(head)
    assert proxy is not None
    assert (proxy.hostname, proxy.port) == ("proxy.example", 8080)
    assert pod_proxy.for_proxy(head, proxy) == (
        b"CONNECT pypi.org:443 HTTP/1.1\r\nProxy-Authorization: Basic bWU6c0BjcnQ=\r\n\r\n"
    )
    inside = pod_proxy.parse(b"CONNECT intranet.example:443 HTTP/1.1\r\n\r\n")
    plain = pod_proxy.parse(b"GET http://pypi.org/ HTTP/1.1\r\n\r\n")
    assert pod_proxy.machine_proxy(inside) is pod_proxy.machine_proxy(plain) is None


def test_a_request_reaches_the_server_as_if_it_came_from_the_client() -> None:
    head = pod_proxy.parse(
        b"POST http://host.example:81/a/b?c=d HTTP/1.1\r\nHost: host.example:81\r\nX: 1\r\n"
        b"Proxy-Authorization: Basic eDp5\r\nconnection: keep-alive\r\n\r\n"
    )
    assert head.address == ("host.example", 81)
    assert pod_proxy.for_server(head) == (
        b"POST /a/b?c=d HTTP/1.1\r\nHost: host.example:81\r\nX: 1\r\nConnection: close\r\n\r\n"
    )
    bare = pod_proxy.parse(b"GET http://host.example HTTP/1.1\r\n\r\n")
    assert pod_proxy.for_server(bare).startswith(b"GET / HTTP/1.1\r\n")
    assert pod_proxy.for_proxy(bare, urlsplit("http://proxy:1")).startswith(
        b"GET http://host.example HTTP/1.1"
    )


@pytest.mark.parametrize(
    "line", [b"GET / HTTP/1.1", b"nonsense", b"GET ftp://host/ HTTP/1.1", b"CONNECT  HTTP/1.1"]
)
def test_what_is_no_request_to_a_proxy_is_refused(line: bytes) -> None:
    with pytest.raises(BadRequest, match="this is a proxy for HTTP"):
        pod_proxy.parse(line + b"\r\n\r\n")
