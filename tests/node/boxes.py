"""Programs that enter a network of their own, each in a process of its own: nobody can leave one again.

`python -m tests.node.boxes NAME FOLDER` runs the function of that name; what it returns is printed as JSON.
"""

import asyncio
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import ROOT
from tfyard.node import linux_namespaces, network
from tfyard.node.hosts import Name
from tfyard.node.network import BoxNetwork, BridgedNetwork
from tfyard.node.processes import ContainerCommand, Processes

USERS = [0, 65534] if os.getuid() == 0 else [os.getuid()]
"""Root, and one who has no rights."""

SERVER = """
import socket, sys
server = socket.create_server(("0.0.0.0", 2222))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.sendall(sys.argv[1].encode())
    connection.close()
"""
ASK = """
import socket, sys, time
for host in sys.argv[1:]:
    while True:
        try:
            with socket.create_connection((host, 2222), 10) as connection:
                print(host, connection.recv(100).decode(), flush=True)
            break
        except socket.gaierror:
            time.sleep(0.05)
"""
LOW_PORT = """
import os, socket
status = open("/proc/self/status").read()
socket.create_server(("0.0.0.0", 80)).close()
rights = int(status.split("CapEff:")[1].split()[0], 16)
print(os.getuid(), "root" if os.getuid() == 0 else rights, flush=True)
"""


class Box:
    """A network, and containers in it."""

    def __init__(self, folder: Path, network: BoxNetwork, processes: Processes) -> None:
        self.folder, self.network, self.processes = folder, network, processes
        self.env: dict[str, str] = {}

    def pod(self, name: str, namespace: str = "default") -> BridgedNetwork:
        """With an /etc of its own, whose hosts file is kept up to date."""
        found, etc = self.network.add(name), self.folder / f"{name}-etc"
        etc.mkdir()
        shutil.copy("/etc/nsswitch.conf", etc)
        pod = {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": {}}
        self.network.hosts.add_pod(pod, found.address, etc / "hosts")
        return found

    def start(self, id: str, pod: BridgedNetwork, program: str, *words: str) -> None:
        mount = (str(self.folder / f"{id.partition('.')[0]}-etc"), "/etc", False)
        argv = [sys.executable, "-u", "-c", program, *words]
        command = ContainerCommand(argv=argv, env=self.env, cwd="/", mounts=(mount,), network=pod.path)
        self.processes.start(id, command, self.folder / f"{id}.log")

    async def lines(self, id: str, count: int) -> list[str]:
        """The first lines of a log, as soon as there are so many."""
        log, end = self.folder / f"{id}.log", time.monotonic() + 60
        while not log.exists() or log.read_text().count("\n") < count:
            assert time.monotonic() < end, log.read_text() if log.exists() else f"{id} wrote nothing"
            await asyncio.sleep(0.02)
        return log.read_text().splitlines()


async def two_servers(box: Box) -> Any:
    """On the same port, reached by address, by name and by a name that comes later."""
    one, two = box.pod("one"), box.pod("two")
    for name, pod in (("one", one), ("two", two)):
        box.start(name, pod, SERVER, f"I am {name}")
        await box.lines(name, 1)
    box.network.hosts.set_names([Name("first", "default", (one.address,))])
    client = box.pod("client")
    words = [one.address, two.address, "first", "first.default.svc", "second"]
    box.start("client", client, ASK, *words)
    await box.lines("client", 4)
    names = [Name("first", "default", (one.address,)), Name("second", "default", (two.address,))]
    box.network.hosts.set_names(names)
    heard = await box.lines("client", 5)
    forwarded = await asyncio.to_thread(two.connect, 2222)
    try:
        await asyncio.to_thread(client.connect, 2222)
    except ConnectionRefusedError:
        heard.append("client refuses")
    return [*heard, forwarded.recv(100).decode()]


async def low_port(box: Box) -> Any:
    pod = box.pod("web")
    box.start("web", pod, LOW_PORT)
    return await box.lines("web", 1)


async def no_way_out(box: Box) -> Any:
    """An address outside is refused by the kernel at once; a removed pod is not reached."""
    lost = box.pod("lost")
    program = "import socket\ntry: socket.create_connection(('192.0.2.1', 80))\nexcept OSError as e: print(e)"
    box.start("lost", lost, program)
    said = await box.lines("lost", 1)
    box.network.remove(lost)
    box.network.remove(lost)
    return [*said, lost.address, box.network.add("next").address]


async def stay(box: Box) -> None:
    """Until killed, with a pod whose process has a daemon."""
    pod = box.pod("pod")
    box.start(
        "pod", pod, "import os, time; os.fork() or os.setsid(); print('up', flush=True); time.sleep(600)"
    )
    await box.lines("pod", 2)
    Path(box.folder / "inode").write_text(str(Path(pod.path).stat().st_ino))
    await asyncio.sleep(600)


def refused(_folder: Path) -> str:
    """In a user namespace in which no network namespace may be made."""
    uid = os.getuid()
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/sys/user/max_net_namespaces").write_text("0")
    before = Path("/proc/self/ns/net").readlink()
    try:
        BoxNetwork.enter()
    except OSError as error:
        assert Path("/proc/self/ns/net").readlink() == before
        return str(error.strerror)
    return "entered"


PROGRAMS = {each.__name__: each for each in (two_servers, low_port, no_way_out, stay)}


async def _in_box(name: str, folder: Path, box_network: BoxNetwork) -> Any:
    async with Processes(folder / "supervisor.log", lambda *_: None) as processes:
        return await PROGRAMS[name](Box(folder, box_network, processes))


def command(name: str, folder: Path, user: int, *words: str, module: str = __name__) -> list[str]:
    return [sys.executable, "-m", module, name, str(folder), str(user), *words]


def run(name: str, folder: Path, user: int, *words: str, module: str = __name__) -> Any:
    """What the program returned, run by this user."""
    argv = command(name, folder, user, *words, module=module)
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def folder_for(user: int) -> Iterator[Path]:
    """One that the user may write to, which pytest's own are not; or a skipped test, and why."""
    if reason := network._refusal(network.SERVICES):
        pytest.skip(reason)
    made = Path(tempfile.mkdtemp(prefix="tfyard-net-"))
    os.chown(made, user, user)
    try:
        yield made
    finally:
        shutil.rmtree(made)


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def become(user: int) -> None:
    """Only by exec are the process's own files in /proc this user's."""
    linux_namespaces.unshare_mounts()
    make_reachable({Path(sys.base_prefix), Path(sys.prefix), ROOT})
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def make_reachable(paths: Iterable[Path]) -> None:
    """Python, its environment and this project may be in directories of root's: open ones take their place."""
    closed = {path: each for path in paths if (each := closed_parent(path))}
    opened = {path: os.open(path, os.O_PATH) for path in closed}  # before any of them is covered
    for each in set(closed.values()):
        linux_namespaces._mount("tmpfs", str(each), "tmpfs", 0)
    for path, descriptor in opened.items():
        path.mkdir(parents=True, exist_ok=True)
        linux_namespaces._mount(f"/proc/self/fd/{descriptor}", str(path), "", linux_namespaces.MS_BIND)
        os.close(descriptor)


def closed_parent(path: Path) -> Path | None:
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 1), None)


if __name__ == "__main__":
    _, name, folder, user = sys.argv
    if int(user) != os.getuid():
        become(int(user))
    if name == "refused":
        answer: Any = refused(Path(folder))
    else:
        answer = asyncio.run(_in_box(name, Path(folder), BoxNetwork.enter()))
    print(json.dumps(answer))
