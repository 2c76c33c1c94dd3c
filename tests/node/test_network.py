"""Pods have networks of their own, for every user, and leave nothing behind."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.node import boxes

pytestmark = pytest.mark.processes


@pytest.fixture(params=boxes.USERS, ids=lambda user: "root" if user == 0 else "a plain user")
def user(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def folder(user: int) -> Iterator[Path]:
    with boxes.folder_for(user) as made:
        yield made


def test_two_pods_listen_on_the_same_port_and_are_reached_by_address_and_by_name(
    folder: Path, user: int
) -> None:
    assert boxes.run("two_servers", folder, user) == [
        "10.244.0.2 I am one",
        "10.244.0.3 I am two",
        "first I am one",
        "first.default.svc I am one",
        "second I am two",
        "client refuses",
        "I am two",
    ]


def test_a_container_may_listen_on_any_port_and_has_no_other_rights(folder: Path, user: int) -> None:
    rights = "root" if user == 0 else 1 << 10
    assert boxes.run("low_port", folder, user) == [f"{user} {rights}"]


def test_what_is_outside_is_unreachable_at_once_and_addresses_are_not_used_again_soon(
    folder: Path, user: int
) -> None:
    said, first, second = boxes.run("no_way_out", folder, user)
    assert said == "[Errno 101] Network is unreachable"
    assert (first, second) == ("10.244.0.2", "10.244.0.3")


def test_a_killed_box_leaves_no_process_and_no_namespace(folder: Path, user: int) -> None:
    with subprocess.Popen(boxes.command("stay", folder, user), cwd=ROOT) as box:
        boxes.until(lambda: (folder / "inode").exists() and (folder / "inode").read_text())
        inode = (folder / "inode").read_text()
        assert len(processes_in(inode)) == 2
        box.send_signal(signal.SIGKILL)
    boxes.until(lambda: not processes_in(inode))
    boxes.until(lambda: not mentioning(str(folder)))


def test_a_refusal_of_the_system_names_the_limit_and_nothing_is_changed(folder: Path, user: int) -> None:
    said = boxes.run("refused", folder, user)
    assert said.startswith("this system refuses network namespaces")
    assert "user.max_net_namespaces is 0" in said


def test_a_process_with_threads_is_not_torn_apart() -> None:
    program = (
        "import threading, time\nfrom tfyard.node.network import BoxNetwork\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nBoxNetwork.enter()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("RuntimeError: other threads would stay in the machine's network\n")


def processes_in(inode: str) -> list[str]:
    """Those whose network namespace it is."""
    return [pid for pid in pids() if link(f"/proc/{pid}/ns/net") == f"net:[{inode}]"]


def mentioning(text: str) -> list[str]:
    return [pid for pid in pids() if text.encode() in content(f"/proc/{pid}/cmdline")]


def pids() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]


def link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
