"""Links, addresses and routes by the kernel's own interface (rtnetlink): no `ip` program is needed.

Only what a private network needs. The layouts are those of linux/rtnetlink.h, if_link.h and if_addr.h.
"""

import errno
import os
import socket
import struct
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

REQUEST, ACK, REPLACE, EXCLUSIVE, CREATE = 0x1, 0x4, 0x100, 0x200, 0x400
ERROR = 2
NEW_LINK, DELETE_LINK, NEW_ADDRESS, NEW_ROUTE = 16, 17, 20, 24
UP = 1
# Attributes of links (IFLA_), of virtual ones (IFLA_INFO_, VETH_INFO_), of addresses (IFA_) and of routes (RTA_).
MAC, NAME, MASTER, LINK_INFO, ALIAS, NAMESPACE = 1, 3, 10, 18, 20, 28
KIND, DATA, PEER = 1, 2, 1
ADDRESS, LOCAL = 1, 2
DESTINATION, OUT_LINK, GATEWAY = 1, 4, 5
MAIN_TABLE, LOCAL_TABLE = 254, 255
BOOT, UNIVERSE, HOST = 3, 0, 254
UNICAST, LOCAL_ROUTE = 1, 2


class Netlink:
    """Acts in the network namespace in which it was made, whichever thread uses it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def set_up(self, link: str) -> None:
        self._ask(NEW_LINK, 0, _link(UP) + _text(NAME, link))

    def add_bridge(self, link: str, address: IPv4Interface) -> None:
        """With a fixed hardware address: a bridge would else change its own with each port."""
        kind = _attribute(LINK_INFO, _text(KIND, "bridge"))
        body = _text(NAME, link) + _attribute(MAC, mac(address.ip)) + kind
        self._ask(NEW_LINK, CREATE | EXCLUSIVE, _link(UP) + body)
        self.add_address(link, address)

    def add_cable(self, link: str, bridge: int, alias: str, peer: bytes) -> None:
        """A pair of links: this end on the bridge (its index), the other one as `peer` describes it."""
        data = _attribute(DATA, _attribute(PEER, peer))
        kind = _attribute(LINK_INFO, _text(KIND, "veth") + data)
        ends = _text(NAME, link) + _number(MASTER, bridge)
        self._ask(NEW_LINK, CREATE | EXCLUSIVE, _link(UP) + ends + _text(ALIAS, alias) + kind)

    def remove(self, link: str) -> None:
        """Both ends of a cable go. No error if it is gone already: it goes with its namespace."""
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
        self._ask(NEW_ROUTE, CREATE | REPLACE, header + _attribute(GATEWAY, gateway.packed))

    def add_local(self, range: IPv4Network) -> None:
        """Every address of the range is this machine's own: servers can listen on each."""
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


def peer(link: str, address: IPv4Address, namespace: int) -> bytes:
    """The other end of a cable: in the network namespace of this descriptor."""
    return _link(0) + _text(NAME, link) + _attribute(MAC, mac(address)) + _number(NAMESPACE, namespace)


def mac(address: IPv4Address) -> bytes:
    """By the address: what neighbours remember stays true when a new pod gets an old address."""
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
