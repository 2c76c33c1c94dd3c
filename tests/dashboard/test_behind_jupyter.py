"""The page behind jupyter-server-proxy of a real Jupyter server, as on a JupyterHub."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.async_api import expect

from tests.dashboard.browser import browser, text, window
from tests.dashboard.served import served
from tests.dashboard.test_behind_nginx import follow_a_stream
from tests.dashboard.test_runs_in_a_browser import running
from tests.ports import reserved_port
from tests.remote.conftest import until

pytestmark = [pytest.mark.processes, pytest.mark.long]
TOKEN = "of-jupyter"


@contextmanager
def jupyter(folder: Path) -> Iterator[str]:
    """Host and port of a server with its own folders."""
    with reserved_port() as port:
        pass
    places = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    words = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    words += [f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={TOKEN}"]
    with subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", *words],
        env={**os.environ, **places, "HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            until(lambda: _answers(port), "Jupyter answers")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/status?token={TOKEN}") as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


async def test_runs_are_followed_and_stopped_below_the_path_of_a_jupyter_server(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with (
        running(tmp_path),
        served(tmp_path, "--local", "--allow-host", "127.0.0.1") as page,
        jupyter(tmp_path) as host,
    ):
        async with browser(pytestconfig) as program, window(program) as watched:
            await watched.page.goto(f"http://{host}/api/status?token={TOKEN}")  # it gets Jupyter's cookie
            port, _, rest = page.address.rpartition(":")[2].partition("/")
            await watched.page.goto(f"http://{host}/proxy/{port}/{rest}")
            await expect(watched.page).to_have_url(f"http://{host}/proxy/{port}{page.base}/")
            await follow_a_stream(watched.page)
            await watched.page.get_by_role("link", name="Stop").click()
            await watched.page.get_by_role("button", name="Stop").click()
            await expect(watched.page.locator("#head .pill")).to_have_text(text("Stopped"))
