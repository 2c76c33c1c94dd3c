"""The way out of the cluster's private network: a process in the machine's network that connects on request.

Inside, no address of the machine's network can be reached, but a socket that was made outside works everywhere. So
this process makes the connections, and hands over the connected sockets: it never sees the data. It ends with the
cluster's process, because their channel is closed. It has no port and no file.

No process inside could start it again. So it is two processes: one makes the connections, the other starts it
again if it is killed; and if that one is killed, the first takes its place.
"""

import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

from tfyard.node.launch import PACKAGES

START = """import sys; sys.path.append({packages!r})
from tfyard.dev.outside import main; main({fd})"""
TIMEOUT = 30.0
"""Seconds for a connection."""
LARGEST = 4096
AGAIN = "again"
RESTARTED = -1
"""Sent instead of the id of a request: pending requests will not be answered."""


class NoWayOut(OSError):
    """The connection cannot be made; the text is for the client."""


class Restarted(NoWayOut):
    """The process that makes connections has ended, and another one has been started."""


class Outside:
    """The process, started before the private network is entered; `async with` receives its answers."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ids = itertools.count()
        self._waiting: dict[int, asyncio.Future[socket.socket]] = {}
        with theirs:
            start = START.format(packages=PACKAGES, fd=theirs.fileno())
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", start],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    async def __aenter__(self) -> "Outside":
        asyncio.get_running_loop().add_reader(self._channel, self._receive)
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)
        self._fail(NoWayOut("the cluster is stopping"))

    def close(self) -> None:
        self._channel.close()
        self.process.wait()

    async def connect(self, host: str, port: int) -> socket.socket:
        """A connection from the machine's network; raises NoWayOut if there is none. A request that is lost
        because the process was started again is sent once more."""
        try:
            return await self._ask(host, port)
        except Restarted:
            return await self._ask(host, port)

    async def _ask(self, host: str, port: int) -> socket.socket:
        id = next(self._ids)
        waiting: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()
        self._waiting[id] = waiting
        try:
            self._channel.send(json.dumps([id, host, port]).encode(), socket.MSG_DONTWAIT)
            return await waiting
        except BrokenPipeError:
            raise NoWayOut("the process that makes connections to the outside has ended") from None
        finally:
            self._waiting.pop(id, None)

    def _receive(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._channel, LARGEST, 1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(self._channel)
            self._fail(NoWayOut("the process that makes connections to the outside has ended"))
            return
        id, problem = json.loads(data)
        if id == RESTARTED:
            self._fail(Restarted("the process that makes connections to the outside was started again"))
            return
        self._settle(id, problem, [socket.socket(fileno=number) for number in descriptors])

    def _settle(self, id: int, problem: str, connections: list[socket.socket]) -> None:
        waiting = self._waiting.pop(id, None)
        if waiting is None or waiting.done():  # the client has gone
            for connection in connections:
                connection.close()
        elif problem:
            waiting.set_exception(NoWayOut(problem))
        else:
            waiting.set_result(connections[0])

    def _fail(self, problem: NoWayOut) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(problem)


def main(fd: int) -> None:
    """Keep a process that makes the connections, until the other end of the channel is closed."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the cluster's process decides what Ctrl-C means
    channel, is_again = socket.socket(fileno=fd), sys.argv[1:] == [AGAIN]
    while _start(channel, is_again):
        is_again = True


def _start(channel: socket.socket, is_again: bool) -> bool:
    """Run the process that makes the connections to its end; returns whether it must be started again."""
    if is_again:
        try:
            channel.send(json.dumps([RESTARTED, ""]).encode())
        except OSError:
            return False
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writes)
        asyncio.run(_serve(channel, reads))
    os.close(reads)
    _, status = os.waitpid(child, 0)
    os.close(writes)
    return status != 0


async def _serve(channel: socket.socket, keeper: int) -> None:
    """Make connections until the other end is closed. `keeper` becomes readable when the parent has ended."""
    ended, tasks = asyncio.Event(), set[asyncio.Task[None]]()

    def receive() -> None:
        data = channel.recv(LARGEST)
        if not data:
            ended.set()
            return
        task = asyncio.create_task(_answer(channel, *json.loads(data)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    asyncio.get_running_loop().add_reader(channel, receive)
    asyncio.get_running_loop().add_reader(keeper, _take_its_place)
    await ended.wait()
    os._exit(0)  # a forked child must not go on as its parent, nor wait for a name that is being looked up


def _take_its_place() -> None:
    first = [word for word in sys.orig_argv if word != AGAIN]
    os.execv(sys.executable, [*first, AGAIN])


async def _answer(channel: socket.socket, id: int, host: str, port: int) -> None:
    """Send a connection or an error. The channel blocks while it is full."""
    try:
        async with asyncio.timeout(TIMEOUT):
            connection = await _connect(host, port)
    except TimeoutError:
        channel.send(json.dumps([id, f"{host}:{port} does not answer"]).encode())
    except UnicodeError:
        channel.send(json.dumps([id, f"{host}:{port}: not the name of a host"]).encode())
    except OSError as problem:
        channel.send(json.dumps([id, f"{host}:{port}: {_words(problem)}"]).encode())
    else:
        with connection:
            socket.send_fds(channel, [json.dumps([id, ""]).encode()], [connection.fileno()])


async def _connect(host: str, port: int) -> socket.socket:
    """A connection to the first address of the host that answers."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    problem: Any = None
    for family, kind, protocol, _, address in addresses:
        connection = socket.socket(family, kind, protocol)
        connection.setblocking(False)
        try:
            await loop.sock_connect(connection, address)
        except OSError as error:
            connection.close()
            problem = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise problem


def _words(problem: OSError) -> str:
    """The system's text: asyncio's only says that a call failed. Errors of name servers have negative numbers."""
    number = problem.errno or 0
    return os.strerror(number) if number > 0 else str(problem.strerror or problem)
