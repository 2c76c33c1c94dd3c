"""The words of `tfyard` as coroutines, for programs with an event loop. Logs are followed in that loop, and pages
and ports are served there; what asks once is the same function, in a thread.

    run = await tfyard.aio.run(tfyard.Job("train.py", worker=2))
    async for line in run.logs(follow=True):
        print(line.task, line.text)
    await run.wait()

A coroutine that is cancelled ends at once; its thread ends with the question that it has asked. Jobs go on.
"""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from tfyard.errors import Invalid, NoSuchJob, NotPossible, TfyardError, Usage
from tfyard.remote.submitting.submission import CannotSubmit
from tfyard.sdk import functions, lines
from tfyard.sdk import run as sync
from tfyard.sdk import sweep as sync_sweep
from tfyard.sdk.comparing import RunComparison
from tfyard.sdk.functions import PathLike
from tfyard.sdk.job import Job
from tfyard.sdk.lines import Line, LineChoice, Names
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
    "NoSuchJob",
    "NotPossible",
    "Run",
    "RunComparison",
    "Sweep",
    "SweepTrial",
    "TfyardError",
    "Usage",
    "WaitTimeout",
    "Why",
    "between",
    "compare",
    "find",
    "run",
    "runs",
    "submit",
    "sweep",
]

P = ParamSpec("P")
T = TypeVar("T")
MOST_LINES = 500
"""Log lines that are read at once."""


async def in_thread(function: Callable[P, T], *args: P.args, **words: P.kwargs) -> T:
    """Run a call in a daemon thread: unlike with the threads of asyncio, the end of the program does not wait
    for it."""
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


Method = Callable[Concatenate[sync.Run, P], T]
Awaitable = Callable[Concatenate["Run", P], Coroutine[Any, Any, T]]


def _awaited(function: Callable[P, sync.Run]) -> Callable[P, Coroutine[Any, Any, "Run"]]:
    @wraps(function)
    async def call(*args: P.args, **words: P.kwargs) -> "Run":
        return _of(await in_thread(function, *args, **words))

    return call


def _of_its_class(method: Method[P, T], run: sync.Run) -> Callable[P, T]:
    """The method of this name: a sweep has some of its own."""
    bound: Callable[P, T] = getattr(run, method.__name__)
    return bound


def _awaitable(method: Method[P, T]) -> Awaitable[P, T]:
    @wraps(method)
    async def ask(self: "Run", /, *args: P.args, **words: P.kwargs) -> T:
        return await in_thread(_of_its_class(method, self._run), *args, **words)

    return ask


def _of_new_run(method: Method[P, sync.Run]) -> Awaitable[P, "Run"]:
    """The awaitable form of a method that returns another run."""

    @wraps(method)
    async def begin(self: "Run", /, *args: P.args, **words: P.kwargs) -> "Run":
        return _of(await in_thread(_of_its_class(method, self._run), *args, **words))

    return begin


def _of_same_run(method: Method[P, sync.Run]) -> Awaitable[P, "Run"]:
    """The awaitable form of a method that returns the run itself."""

    @wraps(method)
    async def change(self: "Run", /, *args: P.args, **words: P.kwargs) -> "Run":
        await in_thread(_of_its_class(method, self._run), *args, **words)
        return self

    return change


run = _awaited(functions.run)
submit = _awaited(functions.submit)
find = _awaited(functions.find)
between = functions.between


async def compare(run: "Run | str", *others: "Run | str") -> RunComparison:
    """Compare runs, as `tfyard.compare` does."""
    named = [each if isinstance(each, str) else each._run for each in (run, *others)]
    return await in_thread(functions.compare, *named)


async def runs(
    *, namespace: str | None = None, context: str | None = None, kubeconfig: PathLike | None = None
) -> "list[Run]":
    listed = await in_thread(functions.runs, namespace=namespace, context=context, kubeconfig=kubeconfig)
    return [_of(each) for each in listed]


@wraps(functions.sweep)
async def sweep(*args: Any, **words: Any) -> "Sweep":
    return Sweep(await in_thread(functions.sweep, *args, **words))


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
        choice = LineChoice(role=role, task=task, tail=tail, since=since, attempt=attempt)
        if follow:  # in this loop: a program that follows a hundred logs has no thread for any of them
            wanted = choice.wanted(await self.tasks)
            async for event in sync.place_of(self._run).follow(wanted):
                for line in filter(None, lines.lines([event])):
                    yield line
            return
        steps = await in_thread(partial(sync.log_steps, self._run, choice, follow=False))
        while (batch := await in_thread(_batch, steps)) is not None:
            for line in batch:
                yield line

    metrics = _awaitable(sync.Run.metrics)
    why = _awaitable(sync.Run.why)
    describe = _awaitable(sync.Run.describe)
    events = _awaitable(sync.Run.events)
    stop = _of_same_run(sync.Run.stop)
    resume = _of_new_run(sync.Run.resume)
    restart = _of_same_run(sync.Run.restart)
    scale = _of_same_run(sync.Run.scale)
    rerun = _of_new_run(sync.Run.rerun)
    delete = _awaitable(sync.Run.delete)
    get = _awaitable(sync.Run.get)
    record = _awaitable(sync.Run.record)
    exec = _awaitable(sync.Run.exec)

    async def wait(
        self, timeout: str | float | timedelta | None = None, *, until: Goal = "succeeded"
    ) -> Self:
        steps = sync.wait_steps(self._run, timeout, until)
        while await in_thread(_has_next, steps):
            pass
        return self

    @asynccontextmanager
    async def tensorboard(self, log_dir: str = "") -> AsyncIterator[str]:
        async with await in_thread(sync.board, self._run, log_dir) as url:
            yield url

    @asynccontextmanager
    async def port_forward(self, task: str, port: int) -> AsyncIterator[str]:
        async with await in_thread(sync.forwarded, self._run, task, port) as address:
            yield address

    def __repr__(self) -> str:
        return repr(self._run)


class SweepTrial(Run):
    """As `tfyard.SweepTrial`; its values are known, and need no `await`."""

    def __init__(self, run: sync_sweep.SweepTrial) -> None:
        super().__init__(run)
        self.number, self.values, self.objective, self.state = (
            run.number,
            run.values,
            run.objective,
            run.state,
        )


class Sweep(Run):
    """As `tfyard.Sweep`: `await sweep.best`, `await sweep.trials`, `await sweep.frame()`."""

    def __init__(self, run: sync_sweep.Sweep) -> None:
        super().__init__(run)
        self._sweep = run

    @property
    def best(self) -> Coroutine[Any, Any, SweepTrial | None]:
        return in_thread(self._best)

    def _best(self) -> SweepTrial | None:
        best = self._sweep.best
        return None if best is None else SweepTrial(best)

    @property
    def trials(self) -> Coroutine[Any, Any, list[SweepTrial]]:
        return in_thread(lambda: [SweepTrial(each) for each in self._sweep.trials])

    async def frame(self) -> Any:
        return await in_thread(self._sweep.frame)


def _of(run: sync.Run) -> Run:
    return Sweep(run) if isinstance(run, sync_sweep.Sweep) else Run(run)


def _has_next(steps: Iterator[None]) -> bool:
    return next(steps, steps) is not steps


def _batch(steps: Iterator[Line | None]) -> list[Line] | None:
    """The next lines, as far as they are there; None: there are no more."""
    batch: list[Line] = []
    for line in steps:
        if line is not None:
            batch.append(line)
        if line is None or len(batch) == MOST_LINES:
            return batch
    return batch or None
