"""The words of `tfyard` as coroutines, for programs with an event loop: the same functions, in threads.

    run = await tfyard.aio.run(tfyard.Job("train.py", worker=2))
    async for line in run.logs(follow=True):
        print(line.task, line.text)
    await run.wait()

A coroutine that is cancelled ends at once; its thread ends with the question that it has asked. What runs goes on.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar

from tfyard.errors import Invalid, TfyardError, Usage
from tfyard.remote.submission import CannotSubmit
from tfyard.sdk import functions
from tfyard.sdk import run as sync
from tfyard.sdk.functions import PathLike
from tfyard.sdk.job import Job
from tfyard.sdk.lines import Choice, Line, Names
from tfyard.sdk.place import Executed
from tfyard.sdk.run import Goal
from tfyard.sdk.why import JobDeleted, JobFailed, WaitTimeout, Why

__all__ = [
    "CannotSubmit",
    "Executed",
    "Invalid",
    "Job",
    "JobDeleted",
    "JobFailed",
    "Line",
    "Run",
    "TfyardError",
    "Usage",
    "WaitTimeout",
    "Why",
    "find",
    "run",
    "runs",
    "submit",
]

P = ParamSpec("P")
T = TypeVar("T")
MOST_LINES = 500
"""That are read at once."""


async def in_thread(function: Callable[P, T], *args: P.args, **words: P.kwargs) -> T:
    """In a thread that nobody waits for: asyncio's own would hold up the end of the program."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[Any], None], value: object) -> None:
        def done() -> None:
            if not future.done():
                settle(value)

        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(done)

    def work() -> None:
        try:
            tell(future.set_result, function(*args, **words))
        except BaseException as problem:  # noqa: BLE001 - it belongs to who awaits
            tell(future.set_exception, problem)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()
    return await future


def _awaited(function: Callable[P, sync.Run]) -> Callable[P, Coroutine[Any, Any, "Run"]]:
    @wraps(function)
    async def call(*args: P.args, **words: P.kwargs) -> "Run":
        return Run(await in_thread(function, *args, **words))

    return call


run = _awaited(functions.run)
submit = _awaited(functions.submit)
find = _awaited(functions.find)


async def runs(
    *, namespace: str | None = None, context: str | None = None, kubeconfig: PathLike | None = None
) -> "list[Run]":
    found = await in_thread(functions.runs, namespace=namespace, context=context, kubeconfig=kubeconfig)
    return [Run(each) for each in found]


class Run:
    """As `tfyard.Run`; what asks is awaited: `await run.status`, `await run.wait()`."""

    def __init__(self, run: sync.Run) -> None:
        self._run = run

    @property
    def name(self) -> str:
        return self._run.name

    @property
    def namespace(self) -> str:
        return self._run.namespace

    @property
    def directory(self) -> Path | None:
        return self._run.directory

    @property
    def status(self) -> Coroutine[Any, Any, str]:
        return in_thread(lambda: self._run.status)

    @property
    def exit_code(self) -> Coroutine[Any, Any, int | None]:
        return in_thread(lambda: self._run.exit_code)

    @property
    def tasks(self) -> Coroutine[Any, Any, list[str]]:
        return in_thread(lambda: self._run.tasks)

    async def logs(
        self,
        *,
        follow: bool = False,
        role: Names = (),
        task: Names = (),
        tail: int | None = None,
        since: str | float | timedelta = "",
        attempt: int | str = "",
    ) -> AsyncIterator[Line]:
        choice = Choice(role=role, task=task, tail=tail, since=since, attempt=attempt)
        steps = await in_thread(partial(self._run._log_steps, choice, follow=follow))
        while (batch := await in_thread(_batch, steps)) is not None:
            for line in batch:
                yield line

    async def metrics(self, *tasks: str) -> list[dict[str, Any]]:
        return await in_thread(self._run.metrics, *tasks)

    async def why(self) -> Why:
        return await in_thread(self._run.why)

    async def describe(self) -> str:
        return await in_thread(self._run.describe)

    async def events(self) -> list[dict[str, Any]]:
        return await in_thread(self._run.events)

    async def wait(
        self, timeout: str | float | timedelta | None = None, *, until: Goal = "succeeded"
    ) -> Self:
        steps = self._run._wait_steps(timeout, until)
        while await in_thread(_has_next, steps):
            pass
        return self

    async def stop(self) -> Self:
        await in_thread(self._run.stop)
        return self

    async def resume(self) -> "Run":
        return Run(await in_thread(self._run.resume))

    async def restart(self, *tasks: str) -> Self:
        await in_thread(self._run.restart, *tasks)
        return self

    async def scale(self, **roles: int) -> Self:
        await in_thread(self._run.scale, **roles)
        return self

    async def rerun(
        self, *, name: str | None = None, env: Mapping[str, object] | None = None, **roles: int
    ) -> "Run":
        return Run(await in_thread(self._run.rerun, name=name, env=env, **roles))

    async def delete(self) -> None:
        await in_thread(self._run.delete)

    async def get(self, path: str, to: str | os.PathLike[str] = ".") -> Path:
        return await in_thread(self._run.get, path, to)

    async def exec(self, command: str | Sequence[str], task: str = "") -> Executed:
        return await in_thread(self._run.exec, command, task)

    def tensorboard(self, log_dir: str = "") -> AbstractAsyncContextManager[str]:
        return _entered(lambda: self._run.tensorboard(log_dir))

    def port_forward(self, task: str, port: int) -> AbstractAsyncContextManager[str]:
        return _entered(lambda: self._run.port_forward(task, port))

    def __repr__(self) -> str:
        return repr(self._run)


@asynccontextmanager
async def _entered(make: Callable[[], AbstractContextManager[T]]) -> AsyncIterator[T]:
    """In one thread from beginning to end, which leaves the context also if nobody waits for it any more."""
    loop, leaving = asyncio.get_running_loop(), threading.Event()
    given: asyncio.Future[T] = loop.create_future()

    def give(value: T) -> None:
        if not given.done():
            given.set_result(value)

    def stay() -> None:
        with make() as value:
            loop.call_soon_threadsafe(give, value)
            leaving.wait()

    staying = asyncio.ensure_future(in_thread(stay))
    either: set[asyncio.Future[Any]] = {given, staying}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if staying.done():
            staying.result()
        try:
            yield given.result()
        finally:
            leaving.set()
            await staying
    finally:
        leaving.set()
        staying.cancel()


def _has_next(steps: Iterator[None]) -> bool:
    return next(steps, steps) is not steps


def _batch(steps: Iterator[Line | None]) -> list[Line] | None:
    """The next lines, as far as they are there; None: there are no more."""
    found: list[Line] = []
    for line in steps:
        if line is not None:
            found.append(line)
        if line is None or len(found) == MOST_LINES:
            return found
    return found or None
