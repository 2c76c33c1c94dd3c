"""A cluster is started, kept running and ended by its three commands, whatever is killed meanwhile."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.cluster.clusters import alive, until
from tests.dev.running_box import TestBox, running
from tfyard.controlplane.binaries import locate

pytestmark = pytest.mark.cluster


def listening(pids: list[int]) -> list[tuple[str, int]]:
    """Addresses on which these processes listen in the machine's own network."""
    inodes = {target[8:-1] for pid in pids for target in opened(pid) if target.startswith("socket:[")}
    rows = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{kind}").read_text().split("\n")[1:]
    ]
    found = [row[1].split(":") for row in rows if len(row) > 9 and row[3] == "0A" and row[9] in inodes]
    return [(socket.inet_ntoa(bytes.fromhex(host)[::-1]), int(port, 16)) for host, port in found]


def opened(pid: int) -> list[str]:
    """What its descriptors lead to; they come and go while one looks, as do processes."""
    found: list[str] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(str(link.readlink()))
    return found


def test_up_says_how_to_use_it_and_a_second_up_leaves_it_as_it_is(box: TestBox) -> None:
    pid = box.pid
    said = box.up()
    assert box.pid == pid
    assert said.out.startswith(f"tfyard-dev is ready: Kubernetes {locate().version}")
    assert f"export KUBECONFIG={box.folder.kubeconfig}" in said.out
    asked = box.dev("kubectl", "-n", "kube-system", "get", "configmaps", "--output=name")
    assert asked.code == 0, asked.err
    assert "configmap/extension-apiserver-authentication\n" in asked.out
    assert said.err == ""
    refused = box.dev("up", "--pretend", "nvidia.com/gpu=8", "--no-operator")
    assert refused.code == 2
    assert "runs already, with another --pretend, --no-operator; to change that" in refused.err


def test_status_shows_what_runs(box: TestBox) -> None:
    found = box.status()
    assert (found["phase"], found["running"], found["pid"]) == ("ready", True, box.pid)
    assert found["kubernetes"] == locate().version
    assert found["memory"] > 100e6
    assert found["disk"] > 1e6
    assert found["free"] > 1e6
    assert Path(found["logs"], "kube-apiserver.log").exists()
    text = box.dev("status")
    assert text.code == 0
    assert text.out.startswith("tfyard-dev: ready\n")
    assert f"  logs         {box.folder.logs}\n" in text.out


def test_one_port_of_the_machine_is_taken_on_loopback(box: TestBox) -> None:
    server = box.status()["server"]
    assert [f"https://{host}:{port}" for host, port in listening(box.family())] == [server]


def test_the_operator_has_its_own_permissions_and_nothing_more(box: TestBox) -> None:
    may = box.kubectl("--as", "tfyard-operator", "auth", "can-i", "--list")
    rows = {line.split()[0]: line for line in may.splitlines()}
    assert "create" in rows["pods"]
    assert not {"secrets", "*.*", "customresourcedefinitions.apiextensions.k8s.io"} & set(rows)


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("kube-apiserver", "etcd")]


@pytest.mark.parametrize("name", ["operator", *LONG])
def test_a_component_that_is_killed_is_started_again(box: TestBox, name: str) -> None:
    victim = box.pid_of(name)
    before = box.status()["restarts"].get(name, 0)
    os.kill(victim, signal.SIGKILL)
    until(lambda: box.status()["restarts"].get(name, 0) == before + 1)
    assert box.pid_of(name) != victim
    until(
        lambda: box.status()["phase"] == "ready"
    )  # a component that has lost its server may have ended, too


def test_down_leaves_no_process_and_no_file(box: TestBox) -> None:
    everyone = box.family()
    assert len(everyone) >= 7
    done = box.dev("down")
    assert (done.code, done.out) == (0, "tfyard-dev is down; nothing is left of it\n")
    assert alive(everyone) == []
    assert list(box.folder.path.parent.iterdir()) == []
    assert box.dev("down").out == "there is no tfyard-dev\n"
    stopped = box.dev("status")
    assert stopped.code == 1
    assert stopped.out.startswith("tfyard-dev: stopped\n")


@pytest.mark.long
@pytest.mark.parametrize("part", ["the box", "every supervisor", "all at once"])
def test_whichever_process_is_killed_nothing_is_left_and_up_works_again(tmp_path: Path, part: str) -> None:
    with running(tmp_path) as box:
        everyone = box.family()
        supervisors = [pid for pid in everyone if "supervisor" in Path(f"/proc/{pid}/cmdline").read_text()]
        elsewhere = (box.folder.path / "elsewhere").readlink()
        victims = {"the box": [box.pid], "every supervisor": supervisors, "all at once": everyone}[part]
        for pid in victims:
            with suppress(ProcessLookupError):  # it ended with one that was killed before it
                os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(everyone))
        assert box.folder.holder() is None
        found = box.status()
        assert (found["phase"], found["running"]) == ("failed", False)
        box.up()
        assert box.status()["phase"] == "ready"
        assert not elsewhere.exists()


A_TEST = """
import time
from pathlib import Path
import pytest
from tests.cli.running import ROOT
from tests.dev.running_box import running

def test_that_hangs(tmp_path):
    with running(Path({state!r}), "--no-operator") as box:
        print("PIDS", *box.family(), flush=True)
        time.sleep(600)
"""


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_box_of_a_test_ends_with_a_pytest_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "test_it.py").write_text(A_TEST.format(state=str(tmp_path)))
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
    with subprocess.Popen(
        [*command, str(tmp_path / "test_it.py")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout
        said = next(line for line in run.stdout if "PIDS" in line)
        everyone = [int(word) for word in said.partition("PIDS")[2].split()]
        assert len(everyone) >= 6
        assert alive(everyone) == everyone
        run.send_signal(number)
        run.wait()
    until(lambda: not alive(everyone))
    box = TestBox(tmp_path)
    assert box.folder.holder() is None
    assert box.dev("down").code == 0


def test_a_box_cannot_end_with_a_process_that_is_not_there(tmp_path: Path) -> None:
    box, ended = TestBox(tmp_path), subprocess.Popen(["true"])
    ended.wait()
    done = box.dev("up", "--until-pid", str(ended.pid))
    assert (done.code, f"--until-pid {ended.pid}: no process has this id" in done.err) == (2, True)
    assert not box.folder.path.exists()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    box = TestBox(tmp_path)
    command = [sys.executable, "-m", "tfyard", "dev", "up"]
    environ = {**os.environ, **box.environ}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as up:
        assert up.stderr
        assert up.stderr.readline() == "    etcd and kube-apiserver\n"
        everyone = box.family()
        elsewhere = until((box.folder.path / "elsewhere").readlink)
        up.send_signal(number)
        said = "stopping tfyard-dev\ntfyard: tfyard-dev was stopped before it was ready\n"
        assert up.stderr.read() == said
    assert up.returncode == 128 + number
    assert until(lambda: not alive(everyone), 10)  # what was just starting may end a moment later
    assert not elsewhere.exists()
    assert not box.folder.path.exists()


@pytest.mark.long
def test_two_boxes_at_once_and_the_leftovers_of_a_reboot(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    mine.write_text("contexts: [{name: mine, context: {}}]\ncurrent-context: mine\n")
    (tmp_path / "binaries").symlink_to(locate().folder)
    options = ("--kubeconfig", str(mine), "--pretend", "example.com/thing=2")
    options += ("--binaries", str(tmp_path / "binaries"))
    with (
        running(tmp_path, *options) as one,
        running(tmp_path, "--no-operator", name="other") as other,
    ):
        one.kubectl("create", "namespace", "only-here")
        assert "only-here" not in other.kubectl("get", "namespaces", "-o", "name")
        assert "tfjobs" not in other.kubectl("api-resources", "-o", "name")
        assert other.dev("down").code == 0
        assert "`tfyard dev up --name other` starts it" in other.dev("kubectl", "get", "pods").err
        assert "only-here" in one.kubectl("get", "namespaces", "-o", "name")
        server = one.folder.kubeconfig.read_text().split("server: ")[1].split()[0]
        os.kill(one.pid, signal.SIGKILL)
        (one.folder.path / "lock").write_text("1\n")
        one.up()
        assert one.folder.settings().binaries == str(tmp_path / "binaries")
        assert server in one.folder.kubeconfig.read_text(), "copies of the kubeconfig are still right"
        assert one.get("node", one.name)["status"]["allocatable"]["example.com/thing"] == "2"
        context = ("config", "--kubeconfig", str(mine), "current-context")
        assert one.kubectl(*context) == "tfyard-dev\n"
        assert one.dev("down").code == 0
        assert one.kubectl(*context) == "mine\n"


@pytest.mark.long
def test_kept_data_is_there_at_the_next_up(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    with running(tmp_path, "--kubeconfig", str(mine)) as box:
        box.kubectl("create", "configmap", "kept")
        assert "tfyard-dev" in mine.read_text()
        done = box.dev("down", "--keep-data")
        assert "its data is in" in done.out
        assert "tfyard-dev" not in mine.read_text()
        assert {path.name for path in box.folder.path.iterdir()} == {"data", "lock"}
        box.up("--no-operator")
        assert "configmap/kept" in box.kubectl("get", "configmaps", "-o", "name")
        assert "clusterrole.rbac.authorization.k8s.io/tfyard-operator" not in box.kubectl(
            "get", "clusterroles", "-o", "name"
        ), "it says that the operator of `tfyard dev` works here"


def test_what_cannot_be_asked_for_is_refused_before_anything_starts(tmp_path: Path) -> None:
    box = TestBox(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = box.dev("up", "--port", port)
    assert done.code == 1
    assert f"--port {port}: Address already in use; choose another" in done.err
    (tmp_path / "text").write_text("a: [")
    refused = box.dev("up", "--kubeconfig", str(tmp_path / "text"))
    assert refused.code == 1
    assert "text is not a kubeconfig" in refused.err
    refused = box.dev("up", "--kubeconfig", str(tmp_path / "text" / "config"))
    assert refused.code == 2
    assert "config cannot be written: " in refused.err
    refused = box.dev("up", "--operator-config", str(tmp_path / "text"))
    assert refused.code == 1
    for options in (("--pretend", "gpu"), ("--pretend", "nvidia.com/gpu=many"), ("--python", "/nowhere")):
        assert box.dev("up", *options).code == 2
    assert box.dev("up", "--binaries", str(tmp_path)).code == 1
    box.dev("down")


def test_a_home_that_cannot_be_written_is_reported_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = TestBox(tmp_path / "file").dev("up")
    assert (done.code, done.out) == (1, "")
    assert "cannot be written: Not a directory; set XDG_STATE_HOME to a folder that can" in done.err


SMALL_DISK = """
import os, sys
from tfyard.node.linux_namespaces import mount_memory, unshare_mounts
unshare_mounts()
mount_memory(sys.argv[1], 50 << 20)
os.execv(sys.executable, [sys.executable, "-m", "tfyard", *sys.argv[2:]])
"""


def test_a_disk_without_room_is_reported_before_anything_starts(tmp_path: Path) -> None:
    box = TestBox(tmp_path)
    command = [sys.executable, "-c", SMALL_DISK, str(tmp_path), "dev", "up"]
    done = subprocess.run(command, env={**os.environ, **box.environ}, capture_output=True, text=True)
    if "unshare" in done.stderr:
        pytest.skip("this system refuses mount namespaces")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tfyard: only 52 MB are free in ")
    assert "XDG_STATE_HOME" in done.stderr


@pytest.mark.long
def test_a_component_that_does_not_start_is_named_with_what_it_said(tmp_path: Path) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    for program in locate().folder.iterdir():
        (broken / program.name).symlink_to(program)
    (broken / "kube-scheduler").unlink()
    (broken / "kube-scheduler").write_text("#!/bin/sh\necho it is broken\nexit 3\n")
    (broken / "kube-scheduler").chmod(0o755)
    box = TestBox(tmp_path)
    done = box.dev("up", "--binaries", str(broken))
    assert done.code == 1
    assert "tfyard-dev did not start: kube-scheduler ended before it was ready:\nit is broken" in done.err
    assert done.err.count("it is broken") == 1
    assert box.folder.holder() is None
    assert box.status()["phase"] == "failed"
    assert box.dev("down").code == 0
