"""How a program is asked to end: by SIGTERM, as a kubelet does, or by Ctrl-C, as a terminal does.

Python runs `finally` blocks on SIGINT and not on SIGTERM, so after Ctrl-C a program first gets SIGINT. If it
catches SIGTERM, it prepared for that, and gets SIGTERM first; TensorFlow catches it in some strategies and trains
on, hence SIGINT follows.
"""

import asyncio
import os
import signal
from contextlib import suppress

from . import orphans
from .engine import ContainerProcess, Engine

INTERRUPT_AFTER = 5.0
"""Seconds from SIGTERM to SIGINT. SIGTERM after SIGINT kills most programs, also in the middle of saving, so it
comes when half of the grace period is over."""
LOOK_EVERY = 0.05


Plan = list[tuple[signal.Signals, float]]
"""Signals in their order, and how many seconds the program has after each."""


async def ask(engine: Engine, process: ContainerProcess, seconds: float, *, by_keyboard: bool) -> None:
    """Ask a program to end, and wait this long for it."""
    pid = engine.pid(process) if by_keyboard else None
    others = orphans.group(pid) if pid else []
    if pid is None:
        await _send(engine, process, [(signal.SIGTERM, seconds)])
    elif others and not orphans.catches(pid, signal.SIGINT):
        await _end_before_shell(process, pid, _plan(others, seconds))
        engine.signal(process, signal.SIGTERM)
        await _send(engine, process, [(signal.SIGCONT, LOOK_EVERY)])
    else:
        await _send(engine, process, _plan([pid, *others], seconds))


def _plan(pids: list[int], seconds: float) -> Plan:
    if any(orphans.catches(pid, signal.SIGTERM) for pid in pids):
        first = min(INTERRUPT_AFTER, seconds)
        return [(signal.SIGTERM, first), (signal.SIGINT, seconds - first)]
    return [(signal.SIGINT, seconds / 2), (signal.SIGTERM, seconds / 2)]


async def _send(engine: Engine, process: ContainerProcess, plan: Plan) -> None:
    for number, seconds in plan:
        engine.signal(process, number)
        await asyncio.wait([process.ended], timeout=seconds)


async def _end_before_shell(process: ContainerProcess, shell: int, plan: Plan) -> None:
    """Ask the programs that a shell has started, and wait for their ends: a signal would end the shell at once,
    and with it the container. The shell is stopped meanwhile, else it would start its next command."""
    _kill(shell, signal.SIGSTOP)
    for number, seconds in plan:
        for pid in orphans.group(shell):
            _kill(pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while orphans.group(shell) and not process.ended.done():
                    await asyncio.sleep(LOOK_EVERY)


def _kill(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended by itself
        os.kill(pid, number)
