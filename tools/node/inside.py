"""The first process of a node, in namespaces of its own: it makes them a machine, starts everything, and waits.

python -m tools.node.inside STATE DESCRIPTOR      DESCRIPTOR: a listening socket of the machine outside
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from tfyard.controlplane.components import LOOPBACK, Addresses
from tfyard.controlplane.control_plane import CONTROLLERS, ControlPlane
from tfyard.controlplane.process import Process, ProcessFailed
from tfyard.dev.connections import Listener, Stream, join
from tfyard.dev.networking import PORTS
from tfyard.kube import Access, kubeconfig
from tfyard.kubelet.claims import Provisioner
from tools.node import ADDRESS, DNS, HERE, NAME, REGISTRY, SERVICES, binaries, cgroups, components
from tools.node.components import CONTAINERD_SOCKET, DNS_USER, NODE_USER, PROXY_USER, Paths

KEPT = ("/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods")
"""What a reboot leaves: in STATE, at the paths where daemons expect it."""
SYSCTLS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
"""A kubelet wants these for the whole machine. It is shown files that say so, and the machine stays as it is."""
OWN_SYSCTLS = ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables")
"""These are the network namespace's own. Services between pods of one bridge need the second."""
LINKS = (
    "link set lo up",
    "link add node0 type veth peer name node0x",  # a network card: the kernel may have no dummy links
    f"addr add {ADDRESS}/24 dev node0",
    "link set node0 up",
    "link set node0x up",
    f"route add {SERVICES} dev node0",  # routed before it is translated
    "route add unreachable default",
)
CAP_SYS_RESOURCE = 24
READY_TIMEOUT = 120.0
KUBELET_HEALTH = "127.0.0.1:10248"


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ProcessFailed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


# --- a machine of its own


def mount_own(state: Path) -> None:
    run("mount", "--make-rshared", "/")  # inside; `unshare` has made it private before
    _mount_sys()
    for folder in ("/var/lib", "/var/log"):
        run("mount", "-t", "tmpfs", "-o", "mode=755", "node", folder)
    _mount_usr(state)
    for folder in KEPT:
        kept = state / "root" / folder[1:]
        kept.mkdir(parents=True, exist_ok=True)
        Path(folder).mkdir(parents=True)
        run("mount", "--bind", str(kept), folder)
        run("mount", "--make-rshared", folder)
    for name, value in SYSCTLS.items():
        file = Path("/run/sysctl") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        run("mount", "--bind", str(file), f"/proc/sys/{name}")


def _mount_sys() -> None:
    """/sys of this network namespace, with the cgroups of the machine."""
    run("mount", "-t", "tmpfs", "-o", "mode=755", "node", "/run")
    aside = Path("/run/cgroups")
    aside.mkdir()
    run("mount", "--rbind", "/sys/fs/cgroup", str(aside))
    run("mount", "--make-rprivate", str(aside))
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    run("mount", "--rbind", str(aside), "/sys/fs/cgroup")
    run("umount", "-R", str(aside))


def _mount_usr(state: Path) -> None:
    """What hostPath volumes create in /usr, such as folders of drivers, is the node's and not the machine's."""
    own = state / "root" / "usr"
    for folder in ("upper", "work"):
        (own / folder).mkdir(parents=True, exist_ok=True)
    layers = f"lowerdir=/usr,upperdir={own / 'upper'},workdir={own / 'work'}"
    run("mount", "-t", "overlay", "-o", layers, "node", "/usr")


def connect_own() -> None:
    for words in LINKS:
        run("ip", *words.split())
    for name in OWN_SYSCTLS:
        Path("/proc/sys", name).write_text("1")
    socket.sethostname(NAME)


def may_lower_oom_score() -> bool:
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if "CapEff" in line)
    return bool(int(effective.split()[1], 16) >> CAP_SYS_RESOURCE & 1)


# --- what it runs


class Inside:
    def __init__(self, state: Path, plane: ControlPlane) -> None:
        self.state, self.plane = state, plane
        self.paths = Paths(state / "etc", plane.folder, binaries.path("cni/bridge").parent)

    def write(self) -> None:
        content = components.files(self.paths, cgroups.name(self.state), may_lower_oom_score())
        for name, text in content.items():
            file = self.paths.etc / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        users = {"kubelet": (NODE_USER, ["system:nodes"]), "kube-proxy": (PROXY_USER, [])}
        for name, (user, groups) in (users | {"coredns": (DNS_USER, [])}).items():
            self.plane.write_kubeconfig(self.plane.access(user, groups), name)
        serving = self.plane.kubelet_certificate(NAME, ADDRESS, NAME)
        (self.paths.etc / "kubelet.crt").write_bytes(serving.certificate)
        (self.paths.etc / "kubelet.key").write_bytes(serving.key)

    def start(self) -> None:
        """Starts all parts in the order in which they need each other, and waits until each can be used."""
        own, kubelet = self.paths.file, binaries.path("kubelet")
        os.environ["PATH"] = f"{binaries.path('containerd').parent}:{os.environ['PATH']}"
        images = str(self.state / "images")
        registry = self._start("registry", sys.executable, str(HERE / "registry.py"), images, REGISTRY)
        _until("the registry", registry, lambda: is_open(REGISTRY))
        containerd = self._start("containerd", str(binaries.path("containerd")), "-c", own("containerd.toml"))
        _until("containerd", containerd, lambda: Path(CONTAINERD_SOCKET).exists())
        node = ("--kubeconfig", str(self.paths.keys / "kubelet.kubeconfig"), "--node-ip", ADDRESS)
        self._start_kubelet(str(kubelet), "--config", own("kubelet.json"), "--hostname-override", NAME, *node)
        proxy = self._start("kube-proxy", str(binaries.path("kube-proxy")), "--config", own("proxy.json"))
        self.plane.kubectl("apply", "-f", own("objects.json"))
        dns = self._start("coredns", str(binaries.path("coredns")), "-conf", own("Corefile"))
        _until("the node", proxy, self._is_ready)
        _until("cluster DNS", dns, lambda: resolves("kubernetes.default.svc.cluster.local"))

    def _start(self, name: str, *argv: str) -> Process:
        process = self.plane.process(name, argv)
        process.start()
        return process

    def _start_kubelet(self, *argv: str) -> None:
        """Again if it ends, as an init system does: containerd's socket is there before its CRI can be used."""
        end = time.monotonic() + READY_TIMEOUT
        kubelet = self._start("kubelet", *argv)
        while not is_open(KUBELET_HEALTH):
            if time.monotonic() > end:
                raise ProcessFailed(f"the kubelet is not ready:\n{kubelet.log_tail()}")
            if not kubelet.running:
                kubelet.start()
            time.sleep(0.2)
        print("the kubelet is ready", flush=True)

    def _is_ready(self) -> bool:
        with contextlib.suppress(ProcessFailed):
            status = json.loads(self.plane.kubectl("get", "node", NAME, "-o", "json"))["status"]
            self.plane.kubectl("get", "serviceaccount", "default", "-n", "default")
            return any(each["type"] == "Ready" and each["status"] == "True" for each in status["conditions"])
        return False


def _until(what: str, process: Process, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + READY_TIMEOUT
    while not holds():
        if not process.running:
            raise ProcessFailed(f"{process.name} ended:\n{process.log_tail()}")
        if time.monotonic() > end:
            raise ProcessFailed(f"{what} is not ready after {READY_TIMEOUT:.0f} s:\n{process.log_tail()}")
        time.sleep(0.1)
    print(f"{what} is ready", flush=True)


def is_open(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as channel:
        return channel.connect_ex((host, int(port))) == 0


def resolves(name: str) -> bool:
    """Whether a name resolves at the Service's address, so kube-proxy works, too. The resolver of this machine
    knows other servers."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    query = b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00\x00\x01\x00\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel, contextlib.suppress(OSError):
        channel.settimeout(1)
        channel.sendto(query, (DNS, 53))
        return channel.recv(512)[7] > 0  # the number of answers
    return False


# --- the way in, and its life


def write_kubeconfig(plane: ControlPlane, state: Path, port: int) -> None:
    """Writes a kubeconfig for programs outside, which come through the listener."""
    access = Access(replace(plane.admin.cluster, server=f"https://{LOOPBACK}:{port}"), plane.admin.user)
    file = state / "kubeconfig"
    file.touch(mode=0o600)
    file.write_text(kubeconfig.dump(access, NAME))


async def serve(plane: ControlPlane, state: Path, listening: socket.socket, until: int | None) -> None:
    async def accept(stream: Stream) -> None:
        await join(stream, await asyncio.open_connection(*plane.endpoint))

    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    if until is not None:
        asyncio.get_running_loop().add_reader(until, end.set)
    listener = Listener(accept)
    await listener.start(sock=listening)
    os.umask(0)  # the folder of a claim is open to pods of any user
    async with plane.client() as client, Provisioner(client, state / "claims"):
        (state / "ready").touch()
        await end.wait()
    await listener.close()


def main(state: Path, listening: socket.socket, until: int | None) -> None:
    mount_own(state)
    connect_own()
    cgroups.make(state)
    os.environ["TMPDIR"] = "/run"
    addresses = Addresses(ADDRESS, PORTS, str(SERVICES))
    with ControlPlane(controllers=CONTROLLERS, addresses=addresses, data=state / "data") as plane:
        print("the control plane is ready", flush=True)
        inside = Inside(state, plane)
        inside.write()
        inside.start()
        write_kubeconfig(plane, state, listening.getsockname()[1])
        asyncio.run(serve(plane, state, listening, until))


if __name__ == "__main__":
    words = sys.argv[1:]
    main(Path(words[0]), socket.socket(fileno=int(words[1])), int(words[2]) if words[2:] else None)
