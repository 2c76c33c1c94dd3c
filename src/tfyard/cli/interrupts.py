"""Ctrl-C, SIGTERM and a closed terminal, for commands that clean up before they end."""

from __future__ import annotations

import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def exit_by_exception() -> None:
    """Let these signals raise SystemExit from now on, so that `finally` and `with` blocks run."""
    for number in _heard():
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return its result. A signal cancels it; once it has cleaned up, the process ends with
    the exit code that shells give to that signal."""
    import asyncio  # 20 ms, which a command that prints once does not need

    received: list[int] = []
    try:
        return asyncio.run(_guarded(main, received))
    except asyncio.CancelledError:
        if not received:
            raise
        sys.exit(128 + received[0])


async def _guarded(main: Coroutine[Any, Any, T], received: list[int]) -> T:
    import asyncio  # `run` has imported it

    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def stop(number: int) -> None:
        received.append(number)
        task.cancel()

    for number in _heard():
        loop.add_signal_handler(number, stop, number)
    return await main


def _heard() -> list[signal.Signals]:
    """The signals to handle: not those that are ignored, as `nohup` ignores SIGHUP."""
    return [number for number in NUMBERS if signal.getsignal(number) is not signal.SIG_IGN]
