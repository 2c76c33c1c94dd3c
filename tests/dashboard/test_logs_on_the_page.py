"""Logs on a job's page: each line once, and readers who leave in the middle. tests/cluster/test_page.py has a job
that is resumed."""

import asyncio
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.cli.running import tfyard
from tests.dashboard.browser import browser, text, window
from tests.dashboard.served import served
from tests.dashboard.test_entering import Client
from tests.remote.conftest import until

pytestmark = pytest.mark.processes

WRITES = """
import time
for turn in range(20):
    print(f"turn {turn}", flush=True)
    time.sleep(.2)
"""
FLOODS = "for line in range(6000): print(line, 'x' * 3000)"


async def test_each_line_of_a_run_stands_there_once_when_it_has_ended_before_and_after_a_reload(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "write.py").write_text(WRITES)
    command = [sys.executable, "-m", "tfyard", "run", "write.py", "-q"]
    with subprocess.Popen(command, cwd=tmp_path), served(tmp_path, "--local") as page:
        async with browser(pytestconfig) as program, window(program) as watched:
            await watched.page.goto(page.address)
            await watched.page.get_by_role("link", name=text("^write-")).click()
            await expect(watched.page.locator("#head .pill")).to_have_text("Succeeded")
            for _ in range(2):
                await expect(watched.page.locator("#log-end")).to_have_text("the job has ended")
                assert len(await each_line_is_there_once(watched.page)) == 20
                await watched.page.reload()


async def each_line_is_there_once(page: Page) -> list[str]:
    """After a stream has told what it has to tell."""
    await asyncio.sleep(3)
    ids = await page.locator("#lines li[id]").evaluate_all("all => all.map(each => each.id)")
    assert len(ids) == len(set(ids))
    assert ids
    return list(ids)


def test_whoever_closes_a_tab_or_stops_a_download_in_the_middle_costs_the_page_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "flood.py").write_text(FLOODS)
    assert tfyard("run", "flood.py", "-q", cwd=tmp_path).code == 0
    with served(tmp_path, "--local") as page:  # it fails if the page has written a traceback
        client = Client(page)
        (path,) = set(re.findall(r'href="(run/flood-[^"]+)"', client.ask("GET", f"{page.base}/").text))
        for view in ("live", "log"):
            leave_in_the_middle(client, f"{page.base}/{path}{view}")
        until(lambda: client.ask("GET", f"{page.base}/{path}").status == 200, "it answers")


def leave_in_the_middle(client: Client, path: str) -> None:
    """Read a little of an answer that is larger than what the system keeps, and cut the connection."""
    host, _, port = client.page.host.partition(":")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.settimeout(60)
        connection.connect((host, int(port)))
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {client.page.host}\r\nCookie: {client.cookie}\r\n\r\n".encode()
        )
        seen = b""
        while b"x" * 2000 not in seen:
            seen += connection.recv(4096)
