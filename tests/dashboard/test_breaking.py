"""Whoever wants to break the page: damaged requests, hostile lines, runs and folders that go away while it is
open, signals in the middle. Each is answered, and nothing of it gets into the terminal of the user."""

import http.client
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.async_api import expect

from tests.cli.running import tfyard
from tests.dashboard.browser import browser, text, window
from tests.dashboard.served import Served, served
from tests.dashboard.test_entering import Answer, Client
from tests.dashboard.test_floods import of_this_folder
from tests.remote.conftest import until
from tfyard.dashboard.board import JobsBoard
from tfyard.testing import eventually

pytestmark = pytest.mark.processes

NO_HTTP = {
    "words": b"GARBAGE\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 200,
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "another version": b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    "a negative length": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "a header without end": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    "an address without end": b"GET /" + b"y" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
}
HTML = "<img src=x onerror=alert(1)></span><script>alert(2)</script>"
WRITES = f"""
import sys
out = sys.stderr.buffer  # one stream keeps its order
out.write({HTML!r}.encode() + b" html\\n")
out.write(b"\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07\\x1b[2J\\x1b[H\\x00\\x07\\x08 escapes\\n")
out.write(b"bad \\xff\\xfe \\xc3\\x28 utf8\\n")
out.write("\\u202egnp.exe \\u2066 bidi\\n".encode())
out.write(b"y" * 2_000_000 + b" long\\n")
out.flush()
raise KeyError("\\u202e{HTML}\\x1b[31m`rm -rf`" + "z" * 300)
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("breaking")
    run(folder)
    with served(folder, "--local") as page:  # it fails if the page has written a traceback
        yield Client(page)


def run(folder: Path) -> str:
    (folder / "train.py").write_text("print('Step: 1, loss: 0.5')")
    assert tfyard("run", "train.py", "-q", cwd=folder).code == 0
    return max(each.name for each in (folder / ".tfyard/runs").iterdir())


def name_of_run(client: Client) -> str:
    found = text(r'href="run/([^"/]+)/"').findall(client.ask("GET", f"{client.page.base}/").text)
    return str(found[0])


@pytest.mark.parametrize("kind", NO_HTTP)
def test_what_is_no_http_is_refused_in_a_word(client: Client, kind: str) -> None:
    host, _, port = client.page.host.partition(":")
    with (
        socket.create_connection((host, int(port)), timeout=60) as connection,
        suppress(ConnectionError),  # it is cut while much of it is on its way
    ):
        connection.sendall(NO_HTTP[kind])
        assert b" 400 Bad Request" in connection.recv(100)
    assert client.ask("GET", f"{client.page.base}/").status == 200


@pytest.mark.parametrize(
    ("kind", "body", "status", "words"),
    [
        ("application/x-www-form-urlencoded; charset=nonsense", b"job=%2Fx", 400, "cannot be read"),
        ("application/x-www-form-urlencoded", b"job=\xff\xfe", 400, "cannot be read"),
        ("multipart/form-data", b"no boundary", 400, "cannot be read"),
        ("multipart/form-data; boundary=x", FILE := b'--x\r\nContent-Disposition: form-data; name="job"; '
         b'filename="a"\r\n\r\n/x\r\n--x--\r\n', 409, "no job is chosen"),
        ("application/x-www-form-urlencoded", b"job=" + b"x" * 400_000, 413, "exceeded"),
    ],
    ids=["encoding", "bytes", "parts", "file", "size"],
)  # fmt: skip
def test_a_damaged_form_is_told_in_words(
    client: Client, kind: str, body: bytes, status: int, words: str
) -> None:
    answer = post(client, "/do/delete", kind, body)
    assert (answer.status, words in answer.text) == (status, True), answer.text


def post(client: Client, path: str, kind: str, body: bytes) -> Answer:
    connection = http.client.HTTPConnection(client.page.host, timeout=60)
    headers = {"Origin": f"http://{client.page.host}", "Cookie": client.cookie, "Content-Type": kind}
    connection.request("POST", client.page.base + path, body, headers)
    answer = connection.getresponse()
    try:
        return Answer(answer.status, answer.headers, answer.read().decode())
    finally:
        connection.close()


def test_a_whole_page_of_jobs_with_the_longest_names_can_be_marked(client: Client) -> None:
    jobs = "&".join(f"job={'n' * 63}%2F{'x' * 240}{number}" for number in range(100))
    answer = client.ask("GET", f"{client.page.base}/do/delete?{jobs}")
    assert (answer.status, answer.text.count('class="preview"')) == (200, 100)


@pytest.mark.parametrize(
    "at",
    [
        "worker-0@0001-01-01T00:00:00Z-0",
        "worker-0@9999-12-31T23:59:59Z-0",
        "worker-0@2026-01-01T00:00:00-0",
        "worker-0%2399999999999999999999@2026-01-01T00:00:00Z-0",
        "%00@%00",
        "@",
    ],
)
def test_an_address_of_a_line_that_cannot_be_is_told_on_the_page(client: Client, at: str) -> None:
    answer = client.ask("GET", f"{client.page.base}/run/{name_of_run(client)}/?at={at}")
    assert answer.status == 200
    assert text("this line (cannot be found|is not in the log any more)").search(answer.text)


def test_a_run_that_is_deleted_while_its_page_is_open_is_told_and_nothing_of_it_is_asked_for_again(
    tmp_path: Path,
) -> None:
    name = run(tmp_path)
    with served(tmp_path, "--local") as page:
        client = Client(page)
        here = f"{page.base}/run/{name}/"
        assert client.ask("GET", here).status == 200
        with stream(client, f"{here}live") as told:
            shutil.rmtree(tmp_path / ".tfyard/runs" / name)
            until(lambda: b"this is what was known of it then" in told.readline(), "the stream says so")
        gone = client.ask("GET", here)
        assert (gone.status, "compare?job" in gone.text) == (410, False)
        for path, status in (("log", 404), ("file", 200), ("job.json", 200), ("do/rerun?show=1", 404)):
            assert client.ask("GET", here + path).status == status, path
        shutil.rmtree(tmp_path / ".tfyard")
        until(lambda: "no runs here" in client.ask("GET", f"{page.base}/").text, "the list is empty")
        name = run(tmp_path)
        until(lambda: name in client.ask("GET", f"{page.base}/").text, "a new run is in it")


async def test_a_clock_that_was_set_back_does_not_keep_the_page_from_looking_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wait.py").write_text("import time\ntime.sleep(600)\n")
    with subprocess.Popen([sys.executable, "-m", "tfyard", "run", "wait.py", "-q"]) as process:
        board = JobsBoard(of_this_folder())
        try:
            await eventually(lambda: is_read_before(board, datetime.max.replace(tzinfo=UTC)))
            (address,) = board.rows
            later = datetime.now(UTC) + timedelta(hours=1)
            board.details[address] = replace(board.details[address], at=later)
            await eventually(lambda: is_read_before(board, later))
        finally:
            await board.close()
            process.terminate()


async def is_read_before(board: JobsBoard, at: datetime) -> None:
    board.look_at(board.rows)
    assert [each for each in board.details.values() if each.at < at]
    assert [row for row in board.rows.values() if row.job.status.phase == "Running"]


@contextmanager
def stream(client: Client, path: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(client.page.host, timeout=60)
    connection.request("GET", path, headers={"Cookie": client.cookie})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_a_signal_ends_the_page_and_all_open_tabs_without_a_word(
    tmp_path: Path, number: signal.Signals
) -> None:
    name = run(tmp_path)
    process = started(tmp_path)
    with process, ExitStack() as tabs:
        client = Client(served_by(process))
        paths = [f"{client.page.base}/live", f"{client.page.base}/run/{name}/live"] * 4
        streams = [tabs.enter_context(stream(client, path)) for path in paths]
        for each in streams:
            assert each.readline().startswith(b"data: ")
        process.send_signal(number)
        limit = threading.Timer(60, process.kill)  # a page that goes on keeps its streams open for ever
        limit.start()
        for each in streams:
            each.read()  # to its end: a stream that is cut raises
        limit.cancel()
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 128 + number


def test_several_at_once_have_ports_of_their_own(tmp_path: Path) -> None:
    processes = [started(tmp_path) for _ in range(3)]
    try:
        pages = [served_by(process) for process in processes]
        assert len({page.host for page in pages}) == 3
        assert {Client(page).entered.status for page in pages} == {303}
    finally:
        for process in processes:
            process.terminate()
            assert process.communicate(timeout=60)[1] == ""


def started(folder: Path) -> "subprocess.Popen[str]":
    """As somebody types it, so that several want the usual port in the same moment."""
    return subprocess.Popen(
        [sys.executable, "-m", "tfyard", "dashboard", "--local"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # tests may run under nohup
    )


def served_by(process: "subprocess.Popen[str]") -> Served:
    assert process.stdout
    return Served(process.stdout.readline().split()[1], process)


async def test_hostile_lines_stay_text_in_their_row_and_cost_no_more_than_others(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    (tmp_path / "write.py").write_text(WRITES)
    tfyard("run", "write.py", "-q", cwd=tmp_path)
    with served(tmp_path, "--local") as page:
        async with browser(pytestconfig) as program, window(program) as watched:
            await watched.page.goto(page.address)
            await watched.page.get_by_role("link", name=text("^write-")).click()
            lines = watched.page.locator("#lines li")
            await expect(lines.filter(has_text=" html").first).to_contain_text(HTML)
            await expect(lines.filter(has_text="escapes").locator("span")).to_have_text("red escapes")
            await expect(lines.filter(has_text="utf8").locator("span")).to_have_text("bad �� �( utf8")
            for each in await lines.filter(has_text=text("yyyy")).locator("span").all_inner_texts():
                assert len(each) < 4100  # of a long line, the log has pieces
            assert await watched.page.locator("main img, main script").count() == 0
            for row in await lines.filter(has=watched.page.locator("time")).all():
                places = [await row.locator(each).bounding_box() for each in ("time", "b", "span")]
                left = [place["x"] for place in places if place]
                assert left == sorted(left)
                assert len(left) == 3, "the time, the task and the text, whatever direction the text has"
            why = await watched.page.locator("#why").inner_text()
            assert HTML in why
            assert not {"\x1b", "\u202e"} & set(why)
            assert not await watched.is_too_wide()
            assert await watched.broken_rules() == []
