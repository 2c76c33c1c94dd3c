"""Pages of TensorBoard and Jupyter that were opened from the dashboard: they stay until they are closed, or the
dashboard ends."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from msgspec import Struct

from tfyard import aio
from tfyard.dashboard.addresses import Address
from tfyard.dashboard.buttons import LABELS
from tfyard.errors import TfyardError
from tfyard.sdk.pages import Page, until_answered


class OpenedPage(Struct):
    what: str
    """tensorboard or notebook"""
    url: str = ""
    """Address of the page; empty until it answers."""
    password: str = ""
    problem: str = ""
    """Why the page could not be opened, or has ended."""

    @property
    def label(self) -> str:
        return LABELS[self.what]


Making = Callable[[], AbstractAsyncContextManager[list[Page]]]


class Opened:
    def __init__(self) -> None:
        self._pages: dict[tuple[Address, str], OpenedPage] = {}
        self._tasks: dict[tuple[Address, str], asyncio.Task[None]] = {}

    def of(self, address: Address) -> list[OpenedPage]:
        return [page for (where, _), page in self._pages.items() if where == address]

    def open(self, address: Address, what: str, making: Making) -> None:
        key = (address, what)
        if key in self._tasks and not self._tasks[key].done():
            return
        self._pages[key] = page = OpenedPage(what)
        self._tasks[key] = asyncio.create_task(self._keep(page, making))

    async def shut(self, address: Address, what: str) -> None:
        self._pages.pop((address, what), None)
        if task := self._tasks.pop((address, what), None):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _keep(self, page: OpenedPage, making: Making) -> None:
        try:
            async with await aio.in_thread(making) as made:
                await until_answered(made[0])
                page.url, page.password = made[0].url, made[0].password
                page.problem = await made[0].over
        except TfyardError as problem:
            page.problem = str(problem)
        page.url = ""
