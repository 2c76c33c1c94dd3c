"""One connection into a pod, without a client."""

import asyncio
import socket

import pytest

from tfyard.kubelet.port_forward import _Connection


async def _ignore(_: bytes) -> None: ...


@pytest.mark.parametrize("turns", range(1, 10))
async def test_a_connection_is_closed_however_far_it_is_when_its_client_goes(turns: int) -> None:
    """Turns of the event loop, after the pod has closed its side."""
    ours, theirs = socket.socketpair()
    theirs.close()

    async def connect(_: int) -> socket.socket:
        return ours

    running = asyncio.create_task(_Connection(_ignore).run(connect, 80))
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await asyncio.sleep(0)
    assert ours.fileno() == -1
