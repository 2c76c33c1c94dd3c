"""What another tfyard may tell a run: a socket in the run's directory takes one order for each connection.

Whoever answers is the run itself, which a process id could not promise. The connection is open until the order is
carried out, for `stop` until the run has ended: then the other side reads what the run has recorded.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

SOCKET = "control"
LONGEST_PATH = 100
"""Bytes. Addresses of sockets end at 107, and paths may be longer."""


class Order(Struct, frozen=True):
    do: Literal["stop", "restart"]
    tasks: tuple[str, ...] = ()


class Reply(Struct, frozen=True, omit_defaults=True):
    refused: tuple[str, ...] = ()
    """Tasks that are not running: the first reply."""
    running: str = ""
    """A task that runs again: the replies after it."""


@contextmanager
def address(directory: Path) -> Iterator[str]:
    """Of the socket: its path, or a short way to it."""
    path = str(directory / SOCKET)
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield path
        return
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET}"
    finally:
        os.close(folder)


def send(directory: Path, order: Order) -> Iterator[Reply]:
    """Until the run hangs up. OSError if nobody listens, or not to this user."""
    with socket.socket(socket.AF_UNIX) as connection:
        with address(directory) as path:
            connection.connect(path)
        connection.sendall(msgspec.json.encode(order) + b"\n")
        with connection.makefile("rb") as replies:
            for line in replies:
                yield msgspec.json.decode(line, type=Reply)
