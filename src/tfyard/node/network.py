"""A private network for pods: each has a network namespace and an address of its own, on one bridge.

All of it is inside namespaces of the process that enters it: no other process sees the addresses, nothing needs
root, and the kernel removes everything when the process and its pods have ended, however suddenly. A pod's
namespace is kept by a descriptor, not by a file that could be left behind. The addresses of Services are local to
the bridge's side, so that a relay can listen on each. There is no route out: other addresses are unreachable at
once.
"""

import errno
import os
import socket
import struct
import threading
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, ip_address
from pathlib import Path
from typing import Protocol, Self, TypeVar

from msgspec import Struct

from . import capabilities
from .hosts import HostsFiles
from .linux_namespaces import CLONE_NEWNET, join_network, unshare, unshare_mounts

T = TypeVar("T")

PODS = IPv4Network("10.244.0.0/16")
SERVICES = IPv4Network("10.96.0.0/16")
GATEWAY = IPv4Interface("10.244.0.1/16")
"""The address of the node."""
BRIDGE, POD_LINK = "pods", "eth0"
CONNECT_TIMEOUT = 10.0
LIMITS = ("max_user_namespaces", "max_net_namespaces", "max_mnt_namespaces")

REQUEST, ACK, REPLACE, EXCLUSIVE, CREATE = 0x1, 0x4, 0x100, 0x200, 0x400
ERROR = 2
NEW_LINK, DELETE_LINK, NEW_ADDRESS, NEW_ROUTE = 16, 17, 20, 24
UP = 1
# Attributes of links (IFLA_), of virtual ones (IFLA_INFO_, VETH_INFO_), of addresses (IFA_) and of routes (RTA_).
MAC, NAME, MASTER, LINK_INFO, ALIAS, NAMESPACE = 1, 3, 10, 18, 20, 28
KIND, DATA, PEER = 1, 2, 1
ADDRESS, LOCAL = 1, 2
DESTINATION, OUT_LINK, VIA = 1, 4, 5
MAIN_TABLE, LOCAL_TABLE = 254, 255
BOOT, UNIVERSE, HOST = 3, 0, 254
UNICAST, LOCAL_ROUTE = 1, 2


class BridgedNetwork(Struct, frozen=True):
    path: str
    """Path of the network namespace, for `Command.network`."""
    address: str

    def connect(self, port: int) -> socket.socket:
        """Connect to a server in the pod: on its loopback, else on its address. OSError if there is none. This
        blocks: call it in a thread."""
        return _in_thread(lambda: self._connect(port))

    def _connect(self, port: int) -> socket.socket:
        join_network(self.path)
        try:
            connection = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT)
        except ConnectionRefusedError:
            connection = socket.create_connection((self.address, port), CONNECT_TIMEOUT)
        connection.settimeout(None)
        return connection


class HasAddress(Protocol):
    @property
    def address(self) -> str: ...


class BoxNetwork:
    """The network that this process is in, made by `enter`."""

    def __init__(self, services: IPv4Network) -> None:
        self.services, self.hosts = services, HostsFiles()
        self._netlink = Netlink()
        self._held: dict[str, tuple[int, str]] = {}
        """Address -> the descriptor that keeps the pod's namespace, and the bridge's end of its cable."""
        self._last, self._links = GATEWAY.ip, 0
        self._netlink.set_up("lo")
        self._netlink.add_bridge(BRIDGE, GATEWAY)
        self._bridge = socket.if_nametoindex(BRIDGE)
        self._netlink.add_local(services)

    @classmethod
    def enter(cls, services: IPv4Network = SERVICES) -> Self:
        """Move this process, which must have no other threads, into a network (and mounts) of its own. Sockets
        that it already has stay in the old one. OSError, with the reason and nothing changed, where the system
        refuses it: it is tried in a child first."""
        if len([*Path("/proc/self/task").iterdir()]) > 1:
            raise RuntimeError("other threads would stay in the machine's network")
        reason = _refusal(services)
        if reason:
            raise OSError(errno.EPERM, reason)
        return cls._enter(services)

    @classmethod
    def _enter(cls, services: IPv4Network) -> Self:
        unshare_mounts(CLONE_NEWNET)
        if os.getuid() != 0:
            capabilities.pass_on()
        return cls(services)

    @property
    def address(self) -> str:
        return str(GATEWAY.ip)

    def has(self, host: str) -> bool:
        """Whether this is an address of a pod, a Service or the node."""
        try:
            address = ip_address(host)
        except ValueError:
            return False
        return address in PODS or address in self.services

    def add(self, name: str) -> BridgedNetwork:
        """Make a network for the pod of this name; it takes milliseconds."""
        address = self._free_address()
        self._links += 1
        link = f"pod-{self._links}"
        descriptor = _in_thread(lambda: self._make_namespace(name, link, address))
        self._held[str(address)] = (descriptor, link)
        return BridgedNetwork(f"/proc/{os.getpid()}/fd/{descriptor}", str(address))

    def remove(self, network: HasAddress) -> None:
        """Remove a network, if there: its connections end at once, and its address is free."""
        descriptor, link = self._held.pop(network.address, (-1, ""))
        if link:
            os.close(descriptor)
            self._netlink.remove(link)

    def _free_address(self) -> IPv4Address:
        """The next free address: that of a pod that has just ended may still be in use by its peers."""
        last, size = self._last, PODS.num_addresses
        for step in range(1, size):
            address = PODS[(int(last) - int(PODS.network_address) + step) % size]
            is_special = address in (PODS.network_address, PODS.broadcast_address, GATEWAY.ip)
            if not is_special and str(address) not in self._held:
                self._last = address
                return address
        raise OSError(errno.EADDRNOTAVAIL, f"no address is free in {PODS}")

    def _make_namespace(self, name: str, link: str, address: IPv4Address) -> int:
        """Make a pod's namespace, in a thread that is in it until the thread ends."""
        unshare(CLONE_NEWNET)
        descriptor = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._netlink.add_cable(link, self._bridge, name, peer_end(POD_LINK, address, descriptor))
            self._set_up_pod(address)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _set_up_pod(self, address: IPv4Address) -> None:
        inside = Netlink()
        try:
            inside.set_up("lo")
            inside.set_up(POD_LINK)
            inside.add_address(POD_LINK, IPv4Interface((address, PODS.prefixlen)))
            inside.add_route(self.services, GATEWAY.ip)
        finally:
            inside.close()


def _in_thread(work: Callable[[], T]) -> T:
    """Work in a new thread: namespaces belong to threads, so what it joins changes nothing for the others."""
    result: list[T] = []
    problem: list[OSError] = []

    def run() -> None:
        try:
            result.append(work())
        except OSError as error:
            problem.append(error)

    thread = threading.Thread(target=run, name="network-namespace")
    thread.start()
    thread.join()
    if problem:
        raise problem[0]
    return result[0]


def _refusal(services: IPv4Network) -> str:
    """Why the system refuses such a network; empty: it does not. A child tries, because a process cannot leave a
    user namespace again."""
    answers, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _try(services, answer)
    os.close(answer)
    with os.fdopen(answers, "rb") as file:
        text = file.read().decode(errors="replace")
    os.waitpid(pid, 0)
    return text


def _try(services: IPv4Network, answer: int) -> None:
    try:
        network = BoxNetwork._enter(services)
        network.remove(network.add("probe"))
    except OSError as error:
        os.write(answer, _explain(error).encode())
    except BaseException as error:
        os.write(answer, repr(error).encode())
        raise
    finally:
        os._exit(0)


def _explain(error: OSError) -> str:
    refusal = f"this system refuses network namespaces ({error.strerror or error})"
    if error.errno == errno.ENOSPC:
        return f"{refusal}: {_limits()}; as root, raise it with `sysctl -w`"
    if error.errno in (errno.EPERM, errno.EACCES):
        return (
            f"{refusal}: it restricts user namespaces. On Ubuntu: `sudo sysctl -w "
            "kernel.apparmor_restrict_unprivileged_userns=0`; in Docker: `--security-opt seccomp=unconfined "
            "--security-opt apparmor=unconfined`"
        )
    return refusal


def _limits() -> str:
    """The limits that may be the cause, with their values."""
    values = {name: Path(f"/proc/sys/user/{name}").read_text().strip() for name in LIMITS}
    zero = {name: value for name, value in values.items() if value == "0"}
    return ", ".join(f"user.{name} is {value}" for name, value in (zero or values).items())


class Netlink:
    """Links, addresses and routes by the kernel's own interface (rtnetlink): no `ip` program is needed. Only what
    a private network needs, in the layouts of linux/rtnetlink.h, if_link.h and if_addr.h.

    It acts in the network namespace in which it was made, whichever thread uses it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def set_up(self, link: str) -> None:
        self._ask(NEW_LINK, 0, _link(UP) + _text(NAME, link))

    def add_bridge(self, link: str, address: IPv4Interface) -> None:
        """Add a bridge with a fixed hardware address, which would else change with each port."""
        kind = _attribute(LINK_INFO, _text(KIND, "bridge"))
        body = _text(NAME, link) + _attribute(MAC, mac(address.ip)) + kind
        self._ask(NEW_LINK, CREATE | EXCLUSIVE, _link(UP) + body)
        self.add_address(link, address)

    def add_cable(self, link: str, bridge: int, alias: str, peer: bytes) -> None:
        """Add a pair of links: this end on the bridge (its index), the other one as `peer` describes it."""
        data = _attribute(DATA, _attribute(PEER, peer))
        kind = _attribute(LINK_INFO, _text(KIND, "veth") + data)
        ends = _text(NAME, link) + _number(MASTER, bridge)
        self._ask(NEW_LINK, CREATE | EXCLUSIVE, _link(UP) + ends + _text(ALIAS, alias) + kind)

    def remove(self, link: str) -> None:
        """Remove both ends of a cable. It is no error if it is gone already: it goes with its namespace."""
        try:
            self._ask(DELETE_LINK, 0, _link(0) + _text(NAME, link))
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise

    def add_address(self, link: str, address: IPv4Interface) -> None:
        header = struct.pack(
            "=BBBBI", socket.AF_INET, address.network.prefixlen, 0, 0, socket.if_nametoindex(link)
        )
        packed = address.ip.packed
        body = _attribute(LOCAL, packed) + _attribute(ADDRESS, packed)
        self._ask(NEW_ADDRESS, CREATE | REPLACE, header + body)

    def add_route(self, to: IPv4Network, gateway: IPv4Address) -> None:
        header = _route(to, MAIN_TABLE, UNIVERSE, UNICAST)
        self._ask(NEW_ROUTE, CREATE | REPLACE, header + _attribute(VIA, gateway.packed))

    def add_local(self, range: IPv4Network) -> None:
        """Make every address of the range local to this machine: servers can listen on each."""
        header = _route(range, LOCAL_TABLE, HOST, LOCAL_ROUTE)
        self._ask(NEW_ROUTE, CREATE | REPLACE, header + _number(OUT_LINK, socket.if_nametoindex("lo")))

    def _ask(self, kind: int, flags: int, body: bytes) -> None:
        self._sequence += 1
        header = struct.pack("=IHHII", 16 + len(body), kind, REQUEST | ACK | flags, self._sequence, 0)
        self._socket.send(header + body)
        while True:
            answer = self._socket.recv(1 << 16)
            _, answered, _, sequence, _, code = struct.unpack_from("=IHHIIi", answer)
            if answered == ERROR and sequence == self._sequence:
                break
        if code:
            raise OSError(-code, os.strerror(-code))


def peer_end(link: str, address: IPv4Address, namespace: int) -> bytes:
    """The other end of a cable, in the network namespace of this descriptor."""
    return _link(0) + _text(NAME, link) + _attribute(MAC, mac(address)) + _number(NAMESPACE, namespace)


def mac(address: IPv4Address) -> bytes:
    """Hardware address, by the IP address: what neighbours remember stays true when a new pod gets an old one."""
    return b"\x02\x00" + address.packed


def _link(flags: int) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, flags, flags)


def _route(to: IPv4Network, table: int, scope: int, kind: int) -> bytes:
    header = struct.pack("=BBBBBBBBI", socket.AF_INET, to.prefixlen, 0, 0, table, BOOT, scope, kind, 0)
    return header + _attribute(DESTINATION, to.network_address.packed)


def _text(kind: int, text: str) -> bytes:
    return _attribute(kind, text.encode() + b"\0")


def _number(kind: int, number: int) -> bytes:
    return _attribute(kind, struct.pack("=I", number))


def _attribute(kind: int, data: bytes) -> bytes:
    size = 4 + len(data)
    return struct.pack("=HH", size, kind) + data + b"\0" * (-size % 4)
