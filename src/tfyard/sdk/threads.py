"""Runs coroutines for synchronous callers, in a thread with its own event loop: this also works where a loop runs
already, as in a notebook."""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

TICK = 0.1
MOST_WAITING = 1000


def call(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine and return its result. Ctrl-C cancels it and waits until it has cleaned up."""
    background = Background(make)
    try:
        return background.result()
    except BaseException:
        background.cancel()
        raise


def apart(function: Callable[[], T]) -> T:
    """Call a function that runs an event loop: in a thread, if one runs here already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as problem:  # noqa: BLE001 - raised by result()
            future.set_exception(problem)

    threading.Thread(target=work, daemon=True).start()
    return future.result()


@contextmanager
def entered(make: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Enter an asynchronous context; at the end of the block it is left, which is waited for."""
    entered_value: Future[T] = Future()

    async def stay() -> None:
        try:
            async with make() as value:
                entered_value.set_result(value)
                await asyncio.Event().wait()
        except BaseException as problem:
            if not entered_value.done():
                entered_value.set_exception(problem)
            raise

    background = Background(stay)
    try:
        yield entered_value.result()
    finally:
        background.cancel()


class Background(Generic[T]):
    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._future: Future[T] = Future()
        self._runner = asyncio.Runner()
        self._task: asyncio.Task[T] | None = None
        self._has_begun = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def result(self) -> T:
        return self._future.result()

    def cancel(self) -> None:
        """Cancel the coroutine and wait until it has ended."""
        self._has_begun.wait()
        if self._task is not None and not self._future.done():
            self._runner.get_loop().call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        with self._runner:
            try:
                self._future.set_result(self._runner.run(self._main()))
            except BaseException as problem:  # noqa: BLE001 - raised by result()
                self._future.set_exception(problem)
                self._has_begun.set()

    async def _main(self) -> T:
        self._task = asyncio.current_task()
        self._has_begun.set()
        return await self._make()


def iterate(make: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
    """Iterate over an asynchronous iterator. A slow reader slows it."""
    items: queue.Queue[tuple[T] | None] = queue.Queue(MOST_WAITING)
    closed = threading.Event()

    def put(item: tuple[T] | None) -> None:
        while not closed.is_set():
            with suppress(queue.Full):
                items.put(item, timeout=TICK)
                return

    async def feed() -> None:
        try:
            async for item in make():
                put((item,))
        finally:
            put(None)

    background = Background(feed)
    try:
        while (item := items.get()) is not None:
            yield item[0]
        background.result()
    finally:
        closed.set()
        background.cancel()
