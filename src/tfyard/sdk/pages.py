"""Local ports that are forwarded: web pages for a browser, and ports of tasks."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.model.callbacks import Say
from tfyard.sdk.forwarding import HOST, Forwarding, Port, Reach
from tfyard.sdk.place import HelperOptions, Place

LONGEST_START = 180.0
"""Seconds until a page must answer; importing TensorFlow alone takes ten."""
LOOK_EVERY, LONGEST_ANSWER = 0.5, 30.0


class LocalSide(Struct, frozen=True):
    port: Port
    """The local port, if none was asked for: the remote number, or a free port if that is taken."""
    say: Say


class Page(Struct):
    title: str
    forwarding: Forwarding
    over: "asyncio.Future[str]"
    """Why the page has ended by itself."""
    answers: asyncio.Event
    password: str = ""
    """Password that was generated for the page."""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.forwarding.bound[0].local}/"


@asynccontextmanager
async def page(title: str, reach: Reach, here: LocalSide, over: "asyncio.Future[str]") -> AsyncIterator[Page]:
    """Forward a local port to a page. Connection problems are reported only after it has answered once."""
    answers = asyncio.Event()
    made = Forwarding(reach, lambda text: here.say(text) if answers.is_set() else None)
    try:
        await _listen(made, here.port)
        yield Page(title, made, over, answers)
    finally:
        await made.close()
        await stop(over)


async def _listen(made: Forwarding, port: Port) -> None:
    try:
        await made.listen(Port(port.remote, port.local or port.remote))
    except TfyardError:
        if port.local:
            raise
        await made.listen(port)


async def stop(work: "asyncio.Future[Any]") -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


class Ports(Struct, frozen=True):
    """Ports of a task that are forwarded to local ports."""

    bound: list[Port]
    over: "asyncio.Future[str]"
    """Why forwarding has ended, such as the end of the job."""


@asynccontextmanager
async def boards(
    places: Sequence[Place], log_dir: str, helper: HelperOptions, here: LocalSide
) -> AsyncIterator[list[Page]]:
    """Pages of TensorBoard for these jobs, and for the trials of sweeps; runs share one, and so do jobs of a
    namespace."""
    async with AsyncExitStack() as stack:
        jobs = [job for place in places for job in (place.sweep() and place.trials()) or [place]]
        pages = list[Page]()
        for where in dict.fromkeys(job.where for job in jobs):
            first, *others = (job for job in jobs if job.where == where)
            pages += await stack.enter_async_context(first.tensorboard(others, log_dir, helper, here))
        yield pages


@asynccontextmanager
async def answering(making: AbstractAsyncContextManager[list[Page]]) -> AsyncIterator[str]:
    """The address of the only page, once it answers."""
    async with making as (made,):
        await until_answered(made)
        yield made.url


@asynccontextmanager
async def address(making: AbstractAsyncContextManager[Ports]) -> AsyncIterator[str]:
    """The local address of the only port."""
    async with making as made:
        yield f"{HOST}:{made.bound[0].local}"


# --- waiting for a page


async def until_answered(page: Page) -> None:
    """Wait until the page answers by HTTP: its port may be open earlier. Raises if it never answers."""
    end = asyncio.get_running_loop().time() + LONGEST_START
    while not await _answers_while_it_lasts(page):
        if page.forwarding.refusal.done():
            raise page.forwarding.refusal.result()
        if page.over.done():
            raise TfyardError(f"{page.title} has ended: {page.over.result()}")
        if asyncio.get_running_loop().time() > end:
            why = f": {page.forwarding.trouble}" if page.forwarding.trouble else ""
            raise TfyardError(f"{page.title} does not answer after {LONGEST_START:.0f} s{why}")
        await asyncio.sleep(LOOK_EVERY)
    page.answers.set()


async def _answers_while_it_lasts(page: Page) -> bool:
    asking = asyncio.ensure_future(_answers(page.forwarding.bound[0].local))
    either: set[asyncio.Future[Any]] = {asking, page.over}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return asking.done() and asking.result()
    finally:
        await stop(asking)


async def _answers(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    try:
        writer.write(f"GET / HTTP/1.0\r\nHost: {HOST}:{port}\r\n\r\n".encode())
        async with asyncio.timeout(LONGEST_ANSWER):
            return (await reader.read(5)).startswith(b"HTTP/")
    except OSError:
        return False
    finally:
        writer.transport.abort()
