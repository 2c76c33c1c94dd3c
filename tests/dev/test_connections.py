"""Connections end with the listener that accepted them."""

import asyncio
import socket

import pytest

from tfyard.dev.connections import Listener, Stream

TURNS = (0, 1, 3, 4, 5, 6)
"""Steps in which the event loop accepts a connection. In the third one, Python 3.11 itself loses it."""


async def is_closed(client: socket.socket) -> bool:
    """By the other side."""
    client.setblocking(False)
    try:
        return not await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), 30)
    except ConnectionResetError:
        return True


async def wait(_: Stream) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("turns", TURNS)
async def test_a_connection_that_comes_while_it_closes_is_closed_too(turns: int) -> None:
    listener = Listener(wait)
    await listener.start("127.0.0.1")
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await listener.close()
        assert await is_closed(client)
