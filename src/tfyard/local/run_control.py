"""Orders of other tfyard processes to a run: a socket in the run's directory takes one for each connection.

The run itself answers, which a process id could not guarantee. The connection is open until the order is
carried out, for `stop` until the run has ended: then the client reads the record of the run.
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
"""Bytes. The address of a socket has at most 107; paths may be longer."""


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
    """Address of the socket: its path, or a shorter one through /proc."""
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
    """Sends the order at once; the replies, until the run closes the connection. OSError if the run does not
    listen, or not to this user."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        with address(directory) as path:
            connection.connect(path)
        connection.sendall(msgspec.json.encode(order) + b"\n")
    except OSError:
        connection.close()
        raise
    return _replies(connection)


def _replies(connection: socket.socket) -> Iterator[Reply]:
    with connection, connection.makefile("rb") as replies:
        for line in replies:
            yield msgspec.json.decode(line, type=Reply)
