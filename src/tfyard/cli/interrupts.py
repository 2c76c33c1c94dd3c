"""Runs a coroutine that has something to clean up: Ctrl-C, SIGTERM and a closed terminal cancel it first."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Its result. After a signal, and what the coroutine does about its cancellation, we end with the code that
    shells give to that signal."""
    received: list[int] = []
    try:
        return asyncio.run(_guarded(main, received))
    except asyncio.CancelledError:
        if not received:
            raise
        sys.exit(128 + received[0])


async def _guarded(main: Coroutine[Any, Any, T], received: list[int]) -> T:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def stop(number: int) -> None:
        received.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    return await main
