"""Reading and writing descriptors (pipes and terminals) without blocking the event loop."""

import asyncio
import errno
import os
from collections.abc import Callable

CHUNK = 1 << 15


async def read(descriptor: int) -> bytes:
    """What is there, at least one byte; b"" at the end. A terminal ends with EIO: nobody has it open any more."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(descriptor, CHUNK)
        except BlockingIOError:
            await _ready(descriptor, loop.add_reader, loop.remove_reader)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""


async def write(descriptor: int, data: bytes) -> None:
    loop = asyncio.get_running_loop()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            await _ready(descriptor, loop.add_writer, loop.remove_writer)


async def _ready(descriptor: int, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
    ready = asyncio.Event()
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)
