"""Keeps the processes of a box running: who ends is started again, ever later if it keeps ending."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from tfyard.controlplane.process import Process, ProcessFailed, SupervisorEnded
from tfyard.model.backoff import Backoff

log = logging.getLogger(__name__)

POLL = 0.25
BACKOFF = Backoff(first=0.2, longest=30.0)
STEADY = 60.0
"""Seconds; who ran that long is started again as after a first failure."""


async def keep(
    process: Process, start: Callable[[], Awaitable[object]], on_restart: Callable[[str], None]
) -> None:
    """For ever; SupervisorEnded if nothing can be started any more. `start` waits until it is ready."""
    backoff = BACKOFF
    while True:
        started = time.monotonic()
        while process.running:
            await asyncio.sleep(POLL)
        log.warning("%s has ended: %s", process.name, process.log_tail(1))
        backoff = (BACKOFF if time.monotonic() - started > STEADY else backoff).next()
        await asyncio.sleep(backoff.delay())
        try:
            await start()
        except SupervisorEnded:
            raise
        except ProcessFailed as problem:
            log.warning("%s", problem)
            continue
        on_restart(process.name)
