"""What lasts longer than one test and needs an event loop: in a thread of its own."""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from threading import Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")
TIMEOUT = 300.0


class Background(Generic[T]):
    def __init__(self, value: T, loop: asyncio.AbstractEventLoop) -> None:
        self.value, self._loop = value, loop

    def do(self, work: Coroutine[Any, Any, U]) -> U:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT)


@contextmanager
def in_background(context: AbstractAsyncContextManager[T]) -> Iterator[Background[T]]:
    """Entered and left by one task, as task groups must be."""
    begun: Future[tuple[Background[T], asyncio.Event]] = Future()

    async def stay() -> None:
        over = asyncio.Event()
        async with context as value:
            begun.set_result((Background(value, asyncio.get_running_loop()), over))
            await over.wait()

    def run() -> None:
        try:
            asyncio.run(stay())
        except BaseException as problem:
            if begun.done():
                raise
            begun.set_exception(problem)

    thread = Thread(target=run, daemon=True)
    thread.start()
    background, over = begun.result(TIMEOUT)
    try:
        yield background
    finally:
        background._loop.call_soon_threadsafe(over.set)
        thread.join(TIMEOUT)
