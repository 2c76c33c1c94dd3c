"""The logs of all trials of a sweep as they are written, until it has ended."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfyard.errors import NoSuchJob
from tfyard.logs.lines import LogEvent, LogSelection, Remark
from tfyard.model.sweep import SweepState, Trial
from tfyard.overview import sweep_text, waiting
from tfyard.overview.waiting import WaitResult
from tfyard.sdk.sweep_place import of_trial

if TYPE_CHECKING:
    from tfyard.sdk.sweep_place import SweepPlace

LOOK_AT_LOGS_EVERY = 0.1
ROOM = 1000
"""Log events that wait for a slow reader."""


async def follow(place: "SweepPlace", wanted: LogSelection) -> AsyncIterator[LogEvent | WaitResult | None]:
    """Follow the logs of trials that run; trials that have ended before are left out. Messages say which trials
    start and end."""
    items: asyncio.Queue[LogEvent | None] = asyncio.Queue(ROOM)
    followed, readers = set[tuple[int, int]](), set[asyncio.Task[None]]()
    state = place.sweep()
    try:
        while True:
            for trial in _new(state, followed):
                readers.add(asyncio.create_task(_read(place, trial, wanted, items)))
            async for event in _waiting(items, place.look_every):
                yield event
            before, state = state, await asyncio.to_thread(place.sweep)
            for text in sweep_text.changes(before, state):
                yield Remark(kind="Sweep", text=text)
            if state.phase != "Running":
                yield _result(state)
                return
    except NoSuchJob:
        yield waiting.deleted(place.name)
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


def _new(state: SweepState, followed: set[tuple[int, int]]) -> list[Trial]:
    """The trials that run and are not followed yet."""
    running = [trial for trial in state.trials if trial.job and trial.state == "Running"]
    new = [trial for trial in running if (trial.number, trial.attempt) not in followed]
    followed |= {(trial.number, trial.attempt) for trial in new}
    return new


async def _read(
    place: "SweepPlace", trial: Trial, wanted: LogSelection, items: "asyncio.Queue[LogEvent | None]"
) -> None:
    own = await asyncio.to_thread(place.trial_place, trial)
    tasks = tuple(await asyncio.to_thread(own.tasks))
    async for event in own.follow(replace(wanted, tasks=tasks)):
        if event is not None and not isinstance(event, WaitResult):
            await items.put(of_trial(event, trial))


async def _waiting(items: "asyncio.Queue[LogEvent | None]", seconds: float) -> AsyncIterator[LogEvent | None]:
    """The events that are queued, and those that arrive within these seconds."""
    end = asyncio.get_running_loop().time() + seconds
    while (left := end - asyncio.get_running_loop().time()) > 0:
        while not items.empty():
            yield items.get_nowait()
        yield None
        await asyncio.sleep(min(left, LOOK_AT_LOGS_EVERY))


def _result(state: SweepState) -> WaitResult:
    return WaitResult(0 if state.phase == "Succeeded" else 1, "\n".join(sweep_text.summary(state)))
