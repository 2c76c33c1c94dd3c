"""Coroutines for synchronous callers: in a thread with an event loop of its own, which works where a loop runs
already, as in a notebook, too."""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")

TICK = 0.1
MOST_WAITING = 1000


def call(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Its result. Ctrl-C cancels the coroutine and waits until it has cleaned up."""
    background = Background(make)
    try:
        return background.result()
    except BaseException:
        background.cancel()
        raise


def apart(function: Callable[[], T]) -> T:
    """Where it may run an event loop: in a thread, if one runs here already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as problem:  # noqa: BLE001 - it belongs to who asks for the result
            future.set_exception(problem)

    threading.Thread(target=work, daemon=True).start()
    return future.result()


@contextmanager
def entered(make: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """What an asynchronous context gives. It is left when the block ends, which is waited for."""
    given: Future[T] = Future()

    async def stay() -> None:
        try:
            async with make() as value:
                given.set_result(value)
                await asyncio.Event().wait()
        except BaseException as problem:
            if not given.done():
                given.set_exception(problem)
            raise

    background = Background(stay)
    try:
        yield given.result()
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

    @property
    def is_over(self) -> bool:
        return self._future.done()

    def result(self) -> T:
        return self._future.result()

    def cancel(self) -> None:
        """Waits until it has ended."""
        self._has_begun.wait()
        if self._task is not None and not self._future.done():
            self._runner.get_loop().call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _run(self) -> None:
        with self._runner:
            try:
                self._future.set_result(self._runner.run(self._main()))
            except BaseException as problem:  # noqa: BLE001 - it belongs to who asks for the result
                self._future.set_exception(problem)
                self._has_begun.set()

    async def _main(self) -> T:
        self._task = asyncio.current_task()
        self._has_begun.set()
        return await self._make()


def iterate(feed: Callable[[Callable[[T], None]], Coroutine[Any, Any, None]]) -> Iterator[T | None]:
    """What `feed` gives to its argument, as it comes; None whenever nothing is new. A slow reader slows it."""
    items: queue.Queue[T] = queue.Queue(MOST_WAITING)
    closed = threading.Event()

    def put(item: T) -> None:
        while not closed.is_set():
            try:
                items.put(item, timeout=TICK)
                break
            except queue.Full:
                continue

    background = Background(lambda: feed(put))
    try:
        while not background.is_over or not items.empty():
            try:
                yield items.get(timeout=TICK)
            except queue.Empty:
                yield None
        background.result()
    finally:
        closed.set()
        background.cancel()
