"""The side of a run that takes orders: see orders.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from .orders import SOCKET, Order, Reply, address

LOOK_EVERY = 0.05
NO_ORDER = (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, msgspec.DecodeError)
"""Who asked is gone, or is not one of us."""


class Run(Protocol):
    def stop(self) -> None: ...
    def restart(self, task: str) -> bool: ...
    def starts(self, task: str) -> int: ...


@asynccontextmanager
async def listening(directory: Path, run: Run) -> AsyncIterator[None]:
    """Beside what is done meanwhile, which does not wait for it to begin."""
    server = asyncio.create_task(_listen(directory, run))
    try:
        yield
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)
        (directory / SOCKET).unlink(missing_ok=True)


async def _listen(directory: Path, run: Run) -> None:
    """Where sockets are not possible, the run goes on without one; `tfyard stop` says so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*NO_ORDER):
            order = msgspec.json.decode(await reader.readuntil(b"\n"), type=Order)
            await (_stop(run) if order.do == "stop" else _restart(run, order.tasks, writer))
        writer.close()

    with suppress(OSError), address(directory) as path:
        server = await asyncio.start_unix_server(serve, path)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()


async def _stop(run: Run) -> None:
    run.stop()
    await asyncio.Event().wait()  # the event loop ends it, after the run has recorded its end


async def _restart(run: Run, tasks: tuple[str, ...], writer: asyncio.StreamWriter) -> None:
    before = {task: run.starts(task) for task in tasks}
    refused = tuple(task for task in tasks if not run.restart(task))
    await _reply(writer, Reply(refused=refused))
    for task in tasks:
        if task not in refused:
            while run.starts(task) == before[task]:
                await asyncio.sleep(LOOK_EVERY)
            await _reply(writer, Reply(running=task))


async def _reply(writer: asyncio.StreamWriter, reply: Reply) -> None:
    writer.write(msgspec.json.encode(reply) + b"\n")
    await writer.drain()
