"""A real browser, without a network of its own, that notes every error in the console and every violation of the
Content-Security-Policy."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    async_playwright,
    expect,
)

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.testing import fixtures
from tools import browser as tool

PATIENCE = 30_000
"""Milliseconds: machines of CI may be busy."""
RULES = """async () => (await axe.run()).violations.map(
    (each) => [each.id, ...each.nodes.map((node) => node.html.slice(0, 160) + ' | ' + node.failureSummary)])"""

expect.set_options(timeout=PATIENCE)


class Watched:
    """A window of a browser, and what its pages complained about: errors, warnings, violations of the policy."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self.context, self.page = context, page
        self.complaints: list[str] = []
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    async def broken_rules(self) -> list[Any]:
        """The rules of accessibility that the page breaks."""
        await self.page.evaluate(tool.axe().read_text())
        found: list[Any] = await self.page.evaluate(RULES)
        return found

    async def is_too_wide(self) -> bool:
        """Whether the page scrolls sideways."""
        wide = await self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return bool(wide > 0)


def require(config: pytest.Config) -> str:
    try:
        tool.axe()
        program = tool.browser()
    except MissingBinaries as problem:
        fixtures.missing(config, f"no browser for the page: {problem}")
    return program


@asynccontextmanager
async def browser(config: pytest.Config) -> AsyncIterator[Browser]:
    program = require(config)
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=program, args=list(tool.ARGUMENTS))
        try:
            yield opened
        finally:
            await opened.close()


@asynccontextmanager
async def window(opened: Browser, *expected: int, **options: Any) -> AsyncIterator[Watched]:
    """Whoever uses it fails if a page complained. `expected`: statuses of answers that are the page's subject."""
    context = await opened.new_context(**options)
    context.set_default_timeout(PATIENCE)
    told = [f"the server responded with a status of {status} " for status in expected]
    try:
        watched = Watched(context, await context.new_page())
        yield watched
        assert [each for each in watched.complaints if not any(words in each for words in told)] == []
    finally:
        await context.close()


async def more_than(elements: Locator, count: int) -> None:
    """Wait until there are more; the page's own policy forbids to wait in the page."""
    end = asyncio.get_running_loop().time() + PATIENCE / 1000
    while await elements.count() <= count:
        assert asyncio.get_running_loop().time() < end, f"still {count}"
        await asyncio.sleep(0.1)


def text(pattern: str) -> "re.Pattern[str]":
    return re.compile(pattern)
