"""A real nginx in front of a page."""

import http.client
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import reserved_port
from tests.remote.conftest import until
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.testing import fixtures
from tools import browser as tool

CONFIG = """\
daemon off;
{user}
pid {folder}/pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  proxy_http_version 1.1;
  server {{
    listen 127.0.0.1:{port} reuseport;
{locations}
  }}
}}
"""
HOLDS_BACK = (
    "proxy_buffering on; proxy_buffers 8 256k; proxy_busy_buffers_size 256k; "
    "proxy_ignore_headers X-Accel-Buffering; "
    "gzip on; gzip_types text/event-stream; gzip_min_length 0; gzip_proxied any;"
)
"""What some proxies do with every answer: they pass it on when it is complete, or much. Of a stream that is
buffered and compressed, nothing comes."""


def location(path: str, target: str, more: str = "") -> str:
    return f"    location {path} {{ proxy_pass http://{target}; {more} }}"


@contextmanager
def nginx(config: pytest.Config, folder: Path, *locations: str) -> Iterator[str]:
    """Its host and port."""
    try:
        program = tool.locate("nginx")
    except MissingBinaries as problem:
        fixtures.missing(config, f"no nginx in front of the page: {problem}")
    user = "user root;" if os.geteuid() == 0 else ""
    with reserved_port() as port:
        pass
    text = CONFIG.format(user=user, folder=folder, port=port, locations="\n".join(locations))
    (folder / "nginx.conf").write_text(text)
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            until(lambda: _answers(port, process), "nginx answers")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def _answers(port: int, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, process.stderr and process.stderr.read()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/nothing-is-here")
        return connection.getresponse().status == 404
    except OSError:
        return False
    finally:
        connection.close()
