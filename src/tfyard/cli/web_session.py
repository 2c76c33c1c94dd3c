"""Shows pages in the browser through a local port, until Ctrl-C, their end, or a time without requests."""

import asyncio
import os
import sys
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from msgspec import Struct

from tfyard.cli import target
from tfyard.errors import Usage
from tfyard.formats import durations
from tfyard.model.durations import write_duration
from tfyard.sdk.forwarding import Port
from tfyard.sdk.pages import LocalSide, Page, until_answered

F = TypeVar("F", bound=Callable[..., Any])
LOOK_EVERY = 0.5


class PageOptions(Struct, frozen=True, kw_only=True):
    """The options of the commands that show pages."""

    port: int = 0
    """Local port; 0: the default port, or a free one if that is taken."""
    idle: float = 0.0
    """Seconds without a connection after which the command ends; 0: never."""
    browser: bool = True

    def here(self, remote: int) -> LocalSide:
        return LocalSide(Port(remote, self.port), target.say)


def options(usual: int) -> Callable[[F], F]:
    """--port, --no-browser and --idle; `read` takes their values."""

    def add(command: F) -> F:
        for option in reversed(
            (
                click.option(
                    "--port",
                    type=click.IntRange(0, 65535),
                    default=0,
                    help=f"Local port; default: {usual}, or a free one.",
                ),
                click.option("--no-browser", is_flag=True, help="Only print the address."),
                click.option(
                    "--idle",
                    default="30m",
                    show_default=True,
                    metavar="TIME",
                    help="Stop after this time without a request; 0: never.",
                ),
            )
        ):
            command = option(command)
        return command

    return add


def read(options: dict[str, Any]) -> PageOptions:
    """Remove the values of `options` from those of the command line."""
    port, no_browser, idle = (options.pop(name) for name in ("port", "no_browser", "idle"))
    seconds = durations.parse(idle)
    if seconds is None:
        raise Usage(f"--idle {idle}: must be a duration, for example 30m, or 0")
    return PageOptions(port=port, idle=float(seconds), browser=not no_browser)


async def show(pages: Sequence[Page], wanted: PageOptions) -> None:
    """Show pages until one of them ends; raises if a page never answers."""
    for page in pages:
        if page.password:
            click.echo(f"password: {page.password}")
            sys.stdout.flush()
        await until_answered(page)
        click.echo(f"{page.title}: {page.url}")
        sys.stdout.flush()
        if wanted.browser and _has_browser():
            await asyncio.to_thread(webbrowser.open, page.url)
    await _until_over(pages, wanted.idle)


async def _until_over(pages: Sequence[Page], idle: float) -> None:
    while True:
        for page in pages:
            if page.forwarding.refusal.done():
                raise page.forwarding.refusal.result()
            if page.over.done():
                target.say(page.over.result())
                return
        if idle and min(page.forwarding.idle for page in pages) > idle:
            target.say(f"no request for {write_duration(int(idle))}: stopping (--idle 0 never stops)")
            return
        await asyncio.sleep(LOOK_EVERY)


def _has_browser() -> bool:
    """Whether there is a graphical browser: otherwise Python would start a text browser in this terminal."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform == "darwin" or any(os.environ.get(name) for name in screens)
