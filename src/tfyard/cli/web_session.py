"""Pages that are shown in the browser through a port here: until Ctrl-C, their end, or until nobody looks."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import click
from msgspec import Struct

from tfyard.cli import target
from tfyard.errors import TfyardError, Usage
from tfyard.formats import durations
from tfyard.formats.declarations.reading import Notes
from tfyard.remote.forwarding import HOST, Forwarding, Port, Reach

LONGEST_START = 180.0
"""Seconds until a page must answer: TensorFlow alone takes ten to import."""
LOOK_EVERY, LONGEST_ANSWER = 0.5, 30.0


class Page(Struct):
    title: str
    forwarding: Forwarding
    over: "asyncio.Future[str]"
    """Why it has ended by itself."""
    answers: asyncio.Event

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.forwarding.bound[0].local}/"


class Show(Struct, frozen=True, kw_only=True):
    """What the options say."""

    port: int = 0
    """Here; 0: the usual one, or any that is free if that is taken."""
    idle: float = 0.0
    """Seconds without a connection after which it ends; 0: never."""
    browser: bool = True


def read(port: int, no_browser: bool, idle: str) -> Show:
    seconds = durations.read(idle, (), Notes())
    if seconds is None:
        raise Usage(f"--idle {idle}: must be a duration, for example 30m, or 0")
    return Show(port=port, idle=float(seconds), browser=not no_browser)


@asynccontextmanager
async def page(title: str, reach: Reach, port: Port, over: "asyncio.Future[str]") -> AsyncIterator[Page]:
    """Without a local port: the same as there, or any that is free. That nothing listens is no news before it
    has answered once."""
    answers = asyncio.Event()
    made = Forwarding(reach, lambda text: target.say(text) if answers.is_set() else None)
    try:
        await _listen(made, port)
        yield Page(title, made, over, answers)
    finally:
        await made.close()


async def _listen(made: Forwarding, port: Port) -> None:
    try:
        await made.listen(Port(port.remote, port.local or port.remote))
    except TfyardError:
        if port.local:
            raise
        await made.listen(port)


async def show(pages: Sequence[Page], wanted: Show) -> None:
    """Until one of them ends; raises if a page never answers."""
    for each in pages:
        await _until_answered(each)
        click.echo(f"{each.title}: {each.url}")
        sys.stdout.flush()
        if wanted.browser and _has_browser():
            await asyncio.to_thread(_open, each.url)
    await _until_over(pages, wanted.idle)


async def _until_over(pages: Sequence[Page], idle: float) -> None:
    while True:
        for each in pages:
            if each.forwarding.refusal.done():
                raise each.forwarding.refusal.result()
            if each.over.done():
                target.say(each.over.result())
                return
        if idle and min(each.forwarding.idle for each in pages) > idle:
            target.say(f"nobody has looked for {durations.write(int(idle))}: this ends (--idle 0 never does)")
            return
        await asyncio.sleep(LOOK_EVERY)


async def _until_answered(each: Page) -> None:
    """By HTTP: a port may be open before there is anything to see."""
    end = asyncio.get_running_loop().time() + LONGEST_START
    while not await _answers_while_it_lasts(each):
        if each.forwarding.refusal.done():
            raise each.forwarding.refusal.result()
        if each.over.done():
            raise TfyardError(f"{each.title} has ended: {each.over.result()}")
        if asyncio.get_running_loop().time() > end:
            why = f": {each.forwarding.trouble}" if each.forwarding.trouble else ""
            raise TfyardError(f"{each.title} does not answer after {LONGEST_START:.0f} s{why}")
        await asyncio.sleep(LOOK_EVERY)
    each.answers.set()


async def _answers_while_it_lasts(each: Page) -> bool:
    asking = asyncio.ensure_future(_answers(each.forwarding.bound[0].local))
    either: set[asyncio.Future[Any]] = {asking, each.over}
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
        return (await asyncio.wait_for(reader.read(5), LONGEST_ANSWER)).startswith(b"HTTP/")
    except OSError:
        return False
    finally:
        writer.transport.abort()


def _has_browser() -> bool:
    """Else Python would start a text browser in this terminal, if there is one."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform == "darwin" or any(os.environ.get(name) for name in screens)


def _open(url: str) -> None:
    import webbrowser

    webbrowser.open(url)


async def stop(work: "asyncio.Future[Any]") -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
