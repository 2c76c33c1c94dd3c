"""Pages that are shown in the browser through a port here: until Ctrl-C, their end, or a time without requests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from tfyard.cli import target
from tfyard.errors import Usage

if TYPE_CHECKING:
    from tfyard.sdk.pages import Here, Page

F = TypeVar("F", bound=Callable[..., Any])
LOOK_EVERY = 0.5


class Show(Struct, frozen=True, kw_only=True):
    """What the options say."""

    port: int = 0
    """Here; 0: the usual one, or any that is free if that is taken."""
    idle: float = 0.0
    """Seconds without a connection after which it ends; 0: never."""
    browser: bool = True

    def here(self, remote: int) -> Here:
        from tfyard.remote.forwarding import Port
        from tfyard.sdk.pages import Here

        return Here(Port(remote, self.port), target.say)


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


def read(given: dict[str, Any]) -> Show:
    """Takes the values of `options` out of those that were given."""
    from tfyard.formats import durations

    port, no_browser, idle = (given.pop(name) for name in ("port", "no_browser", "idle"))
    seconds = durations.parse(idle)
    if seconds is None:
        raise Usage(f"--idle {idle}: must be a duration, for example 30m, or 0")
    return Show(port=port, idle=float(seconds), browser=not no_browser)


async def show(pages: Sequence[Page], wanted: Show) -> None:
    """Until one of them ends; raises if a page never answers."""
    import asyncio

    from tfyard.sdk.pages import until_answered

    for each in pages:
        await until_answered(each)
        click.echo(f"{each.title}: {each.url}")
        sys.stdout.flush()
        if wanted.browser and _has_browser():
            await asyncio.to_thread(_open, each.url)
    await _until_over(pages, wanted.idle)


async def _until_over(pages: Sequence[Page], idle: float) -> None:
    import asyncio

    from tfyard.formats import durations

    while True:
        for each in pages:
            if each.forwarding.refusal.done():
                raise each.forwarding.refusal.result()
            if each.over.done():
                target.say(each.over.result())
                return
        if idle and min(each.forwarding.idle for each in pages) > idle:
            target.say(f"no request for {durations.write(int(idle))}: stopping (--idle 0 never stops)")
            return
        await asyncio.sleep(LOOK_EVERY)


def _has_browser() -> bool:
    """Else Python would start a text browser in this terminal, if there is one."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform == "darwin" or any(os.environ.get(name) for name in screens)


def _open(url: str) -> None:
    import webbrowser

    webbrowser.open(url)
