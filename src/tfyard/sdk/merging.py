"""Merges iterators: asynchronous ones in one event loop, blocking ones in threads."""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


async def merged(*sources: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield the items of all sources as they come; a slow reader slows the sources. An error of one ends all."""
    items: asyncio.Queue[tuple[T] | Exception | None] = asyncio.Queue(len(sources))

    async def feed(source: AsyncIterator[T]) -> None:
        try:
            async for item in source:
                await items.put((item,))
            await items.put(None)
        except Exception as problem:  # noqa: BLE001 - raised in the reader
            await items.put(problem)

    tasks = [asyncio.create_task(feed(source)) for source in sources]
    try:
        left = len(tasks)
        while left:
            match await items.get():
                case None:
                    left -= 1
                case Exception() as problem:
                    raise problem
                case (item,):
                    yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def together(sources: Sequence[Iterator[list[T]]]) -> Iterator[list[T]]:
    """Yield the first lists of all sources as one list, then each list as it comes. An error of one ends all. Each
    source has a thread, which ends with the program."""
    if len(sources) == 1:
        yield from sources[0]
        return
    items: queue.SimpleQueue[list[T] | Exception] = queue.SimpleQueue()

    def feed(source: Iterator[list[T]]) -> None:
        try:
            for item in source:
                items.put(item)
        except Exception as problem:  # noqa: BLE001 - raised in the reader
            items.put(problem)

    for source in sources:
        threading.Thread(target=feed, args=(source,), daemon=True).start()
    yield [each for _ in sources for each in _taken(items)]
    while True:
        yield _taken(items)


def _taken(items: "queue.SimpleQueue[list[T] | Exception]") -> list[T]:
    item = items.get()
    if isinstance(item, Exception):
        raise item
    return item
