"""Requests of a node that outlast an apiserver that is away."""

import asyncio
from typing import Any

from tfyard.kube import Client, Request, Transient

RETRY = 0.2


async def send(client: Client, request: Request) -> Any:
    """The answer to a request that can be repeated, as all requests of a node can."""
    while True:
        try:
            return await client.send(request)
        except Transient:
            await asyncio.sleep(RETRY)
