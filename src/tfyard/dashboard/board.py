"""The jobs that one user sees, up to date: one watch for each source, however many tabs look.

Watches block, so each has a thread; what they tell is put together in the event loop. Details of jobs are read
only while a tab shows them, a few at once, and the less often the longer that takes.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from tfyard import aio
from tfyard.dashboard import addresses, details
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.details import Details
from tfyard.dashboard.identity import JobSource, ViewerIdentity
from tfyard.errors import TfyardError
from tfyard.sdk.place import Listed

AT_ONCE, MOST_A_SECOND = 4, 4
"""Jobs in lists whose details are read at the same time, and how many of those that go on are read again in a
second: a list of a hundred must not keep the server busy."""
LIST_EVERY, PAGE_EVERY, SLOWER = 10.0, 2.0, 10
"""Seconds between two looks at the details of a job that runs, in a list and on its page; and how many times as
long as a look takes at least."""
LOOKED_AT = 20.0
"""Seconds for which a job counts as looked at after a tab has shown it."""
TRY_AGAIN, PERMISSIONS_EVERY = 5.0, 60.0
WATCH = "watch of"
"""Beginning of the names of threads that watch."""
MOST_GONE, MOST_DETAILS = 500, 1000


class Freshness(Struct, frozen=True, kw_only=True):
    """How current the jobs of a source are."""

    source: str
    as_of: datetime | None = None
    """When they were known to be current; None: they have not been read yet."""
    lost: datetime | None = None
    """Since when they cannot be watched; None: they are watched."""
    problem: str = ""


class GoneJob(Struct, frozen=True):
    """A job that was deleted while a page showed it."""

    row: Listed
    at: datetime


class Interest(Struct):
    until: float
    whole: bool


class NobodyLooks(TfyardError):
    """Raised in the thread of a watch to end it: the page is closed."""


class JobsBoard:
    def __init__(self, identity: ViewerIdentity) -> None:
        self._identity, self._loop = identity, asyncio.get_running_loop()
        self.rows: dict[Address, Listed] = {}
        self.gone: OrderedDict[Address, GoneJob] = OrderedDict()
        self.details: OrderedDict[Address, Details] = OrderedDict()
        self.freshness = [Freshness(source=source.name) for source in identity.sources]
        self.version = 0
        self._changed = asyncio.Event()
        self._listed: dict[int, set[Address]] = {}
        """Number of a source -> the jobs that it lists."""
        self._is_closed = threading.Event()
        self._interests: dict[Address, Interest] = {}
        self._reading: dict[Address, asyncio.Task[None]] = {}
        self._missing: dict[tuple[str, bool], tuple[float, dict[str, str]]] = {}
        for turn, source in enumerate(identity.sources):
            name = f"{WATCH} {source.name}"
            threading.Thread(target=self._watch, args=(turn, source), name=name, daemon=True).start()
        self._reader = asyncio.create_task(self._read_details())

    @property
    def is_closed(self) -> bool:
        return self._is_closed.is_set()

    async def close(self) -> None:
        """Watches end, and tell nothing more; nothing of the user is kept in their threads."""
        self._is_closed.set()
        self._identity.disconnect()
        self._notify()
        tasks = [self._reader, *self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def wait(self, version: int, longest: float) -> None:
        """Wait until something is newer than `version`, at most `longest` seconds."""
        if self.version == version:
            changed = self._changed
            try:
                async with asyncio.timeout(longest):
                    await changed.wait()
            except TimeoutError:
                return

    async def until_read(self, longest: float) -> None:
        """Wait until each source was read once, or has a problem."""
        end = self._loop.time() + longest
        while any(not each.as_of and not each.problem for each in self.freshness):
            left = end - self._loop.time()
            if left <= 0:
                return
            await self.wait(self.version, left)

    # --- rows

    def _watch(self, turn: int, source: JobSource) -> None:
        """Watch a source until the page is closed, in a thread; a source that cannot be read is tried again."""

        def contact(problem: str) -> None:
            if self._is_closed.is_set():
                raise NobodyLooks("the page is closed")
            self._call_in_loop(self._note, turn, problem)

        while not self._is_closed.is_set():
            try:
                is_first = True
                for rows in source.jobs.watch(contact):
                    if self._is_closed.is_set():
                        return
                    self._call_in_loop(self._take, turn, rows, is_first)
                    is_first = False
            except (TfyardError, OSError) as problem:
                self._call_in_loop(self._note, turn, str(problem))
            self._is_closed.wait(TRY_AGAIN)

    def _call_in_loop(self, function: object, *words: object) -> None:
        if not self._is_closed.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *words)  # type: ignore[arg-type]

    def _take(self, turn: int, rows: list[Listed], is_first: bool) -> None:
        listed = self._listed.setdefault(turn, set())
        now, known = datetime.now(UTC), {addresses.of(row.job): row for row in rows}
        missing = listed - known.keys() if is_first else set()  # deleted while it was not watched
        for address in missing:
            self._remember_gone(address, self.rows[address], now)
        for address, row in known.items():
            if row.job.status.phase == "Deleted":
                self._remember_gone(address, self.rows.get(address, row), now)
            else:
                self.rows[address] = row
                self.gone.pop(address, None)
        listed.update(known)
        listed.intersection_update(self.rows)
        self._note(turn, "")
        self._notify()

    def _remember_gone(self, address: Address, row: Listed, now: datetime) -> None:
        self.rows.pop(address, None)
        self.gone[address] = GoneJob(row, now)
        while len(self.gone) > MOST_GONE:
            self.gone.popitem(last=False)

    def _note(self, turn: int, problem: str) -> None:
        now, before = datetime.now(UTC), self.freshness[turn]
        if problem:
            self.freshness[turn] = replace(before, lost=before.lost or now, problem=problem)
        else:
            self.freshness[turn] = replace(before, as_of=now, lost=None, problem="")
        if bool(problem) != bool(before.problem) or not before.as_of:
            self._notify()

    def _notify(self) -> None:
        self.version += 1
        before, self._changed = self._changed, asyncio.Event()
        before.set()

    # --- permissions

    async def missing(self, address: Address) -> dict[str, str]:
        """Action -> the permission that the user lacks for it. Asked for once a minute for the jobs of
        each namespace, and for its sweeps, which need others."""
        row = self.rows.get(address)
        key = (address.namespace, row is not None and row.sweep is not None)
        until, known = self._missing.get(key, (0.0, {}))
        if time.monotonic() > until:
            place = await aio.in_thread(self._identity.find, address)
            known = await aio.in_thread(place.missing_permissions)
            self._missing[key] = (time.monotonic() + PERMISSIONS_EVERY, known)
        return known

    # --- details

    def look_at(self, shown: Iterable[Address], *, whole: bool = False) -> None:
        """Note that a tab shows these jobs now; their details are read for some time."""
        until = time.monotonic() + LOOKED_AT
        for address in shown:
            known = self._interests.get(address)
            is_whole = whole or (known is not None and known.whole and known.until > time.monotonic())
            self._interests[address] = Interest(until, is_whole)
        self._start_reading()

    async def read_now(self, address: Address, longest: float) -> None:
        """Wait until the job has been read for its own page, at most these seconds."""
        self.look_at([address], whole=True)
        try:
            async with asyncio.timeout(longest):
                while (known := self.details.get(address)) is None or not known.is_whole:
                    await asyncio.shield(self._reading.get(address) or self._read(address))
                    if address not in self.rows:
                        return
        except TimeoutError:
            return

    def read_again(self, address: Address) -> None:
        """Read the details of this job again at the next look, because an action has changed it."""
        if known := self.details.get(address):
            self.details[address] = replace(known, at=datetime.fromtimestamp(0, UTC))

    async def _read_details(self) -> None:
        while True:
            await self.wait(self.version, 1.0)
            self._start_reading()
            await asyncio.sleep(0.1)  # many changes at once are one look

    def _start_reading(self) -> None:
        now, due = time.monotonic(), list[Address]()
        for address, interest in list(self._interests.items()):
            if interest.until < now:
                del self._interests[address]
            elif address not in self._reading and self._is_due(address, interest):
                due.append(address)
        due.sort(key=self._turn)
        for address in due[: max(0, AT_ONCE - len(self._reading))]:
            self._read(address)

    def _turn(self, address: Address) -> tuple[bool, float]:
        """Jobs with an open page are first, then those that were read the longest time ago."""
        known = self.details.get(address)
        return not self._interests[address].whole, known.at.timestamp() if known else 0.0

    def _is_due(self, address: Address, interest: Interest) -> bool:
        row, known = self.rows.get(address), self.details.get(address)
        if row is None:
            return False
        if known is None or (interest.whole and not known.is_whole) or not known.at.timestamp():
            return True
        age = (datetime.now(UTC) - known.at).total_seconds()
        if age < 0:
            return True  # the clock was set back
        often = PAGE_EVERY if interest.whole else max(LIST_EVERY, len(self._interests) / MOST_A_SECOND)
        every = max(often, SLOWER * known.took)
        if known.row != row:
            return age >= min(every, PAGE_EVERY)
        return not row.is_over and age >= every

    def _read(self, address: Address) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._read_one(address))
        self._reading[address] = task
        task.add_done_callback(lambda _: self._reading.pop(address, None))
        return task

    async def _read_one(self, address: Address) -> None:
        interest = self._interests.get(address)
        try:
            found = await aio.in_thread(self._details, address, interest is not None and interest.whole)
        except (TfyardError, OSError) as problem:
            if (row := self.rows.get(address)) is None:
                return
            at = datetime.now(UTC)
            found = Details(at=at, took=1.0, row=row, problems=(str(problem),))
        self.details[address] = found
        self.details.move_to_end(address)
        while len(self.details) > MOST_DETAILS:
            self.details.popitem(last=False)
        self._notify()

    def _details(self, address: Address, whole: bool) -> Details:
        place = self._identity.find(address)
        row = self.rows.get(address) or place.row()
        return details.read(place, row, self.details.get(address), whole=whole)
