"""Ports of something far away, without anything far away."""

import asyncio
import socket
from contextlib import AsyncExitStack

import pytest

from tests.dev.test_connections import TURNS, is_closed
from tfyard.model.callbacks import Say
from tfyard.sdk.forwarding import Forwarding, Port, Stream


class Nowhere:
    name = "nowhere"

    async def connect(self, stack: AsyncExitStack, port: int, tell: Say) -> Stream:  # noqa: ARG002
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


@pytest.mark.parametrize("turns", TURNS)
async def test_a_connection_that_comes_while_it_closes_is_closed_too(turns: int) -> None:
    forwarding = Forwarding(Nowhere(), print)
    await forwarding.listen(Port(80))
    with socket.create_connection(("127.0.0.1", forwarding.bound[0].local)) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await forwarding.close()
        assert await is_closed(client)
