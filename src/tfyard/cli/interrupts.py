"""Ctrl-C, SIGTERM and a closed terminal, for commands that have something to clean up first."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def exit_by_exception() -> None:
    """From now on they raise SystemExit, so that `finally` and `with` do their work."""
    for number in _heard():
        signal.signal(number, lambda number, _: sys.exit(128 + number))


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

    for number in _heard():
        loop.add_signal_handler(number, stop, number)
    return await main


def _heard() -> list[signal.Signals]:
    """Not those that are ignored, as `nohup` does with SIGHUP."""
    return [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
