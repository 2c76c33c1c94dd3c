"""Writes what a run was started with: its code as git knows it, packages, parameters, machine.

Git and packages are read by other programs while the first task starts, which waits for none of it.
"""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from errno import ETIMEDOUT
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from tfyard import __version__
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.job_input import git
from tfyard.job_input.bounded_process import QuestionLimits, ask
from tfyard.job_input.code_reading import submitter
from tfyard.local import gpus
from tfyard.local.machine import Machine, memory
from tfyard.local.prepared import PreparedRun
from tfyard.model.secrecy import scrubbed
from tfyard.overview.job_record import CodeState, MachineRecord, Origin, Software
from tfyard.overview.parameters import command, decisive_container, parameters, plain_env

T = TypeVar("T")
FILE, DIFF = "record.json", "code.diff"
LONGEST = 10.0
"""Seconds for git, and for the packages."""
LONGEST_AFTER = 2.0
"""Seconds that the end of a run waits for them."""
MOST_READ = 1 << 20

_PACKAGES = r"""
import json, os, platform, re, sys
packages = {}
for folder in sys.path[1:]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        continue
    for name in names:
        stem, _, kind = name.rpartition(".")
        if kind in ("dist-info", "egg-info"):
            package, _, version = stem.partition("-")
            if kind == "egg-info":
                version = version.partition("-py")[0]
            packages.setdefault(re.sub("[-_.]+", "-", package).lower(), version)
print(json.dumps({"python": platform.python_version(), "packages": packages}))
"""
"""Program for the interpreter of the tasks. The name of a package's folder has its version: no file is opened."""


@asynccontextmanager
async def beside(
    prepared: PreparedRun, machine: Machine, directory: RunDirectory, started: asyncio.Event
) -> AsyncIterator[None]:
    """Records the run during the block. `started`: the first task has started."""
    limits = QuestionLimits(LONGEST)
    task = asyncio.create_task(_record(prepared, machine, directory, started, limits))
    try:
        yield
    finally:
        started.set()
        _, late = await asyncio.wait([task], timeout=LONGEST_AFTER)
        if late:
            limits.stop()  # what is known by now is recorded
            await asyncio.wait([task], timeout=LONGEST_AFTER)
        directory.attempt(partial(_finish, task))


def _finish(task: "asyncio.Task[None]") -> None:
    if not task.done():
        task.cancel()
        raise OSError(ETIMEDOUT, "reading what the run was started with took too long")
    task.result()


async def _record(
    prepared: PreparedRun,
    machine: Machine,
    directory: RunDirectory,
    started: asyncio.Event,
    limits: QuestionLimits,
) -> None:
    await started.wait()
    (code, diff), software = await asyncio.gather(
        _in_thread(partial(_code, prepared, machine, limits)),
        _in_thread(partial(_software, prepared, machine, limits)),
    )
    origin = Origin(
        tfyard=__version__,
        submitter=submitter(),
        at=datetime.now(UTC),
        command=command(prepared.job),
        parameters=parameters(prepared.job, prepared.settings.variables),
        code=code,
        software=software,
        machine=this_machine(),
    )
    directory.write(FILE, msgspec.json.format(msgspec.json.encode(origin)).decode(), private=True)
    if diff:
        directory.write(DIFF, diff, private=True)


async def _in_thread(work: Callable[[], T]) -> T:
    """The result of a call in a thread that the end of this process does not wait for, unlike asyncio's own: a
    file system may hang."""
    future: Future[T] = Future()

    def answer() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised where the result is awaited
            future.set_exception(error)

    threading.Thread(target=answer, daemon=True, name="recording").start()
    return await asyncio.wrap_future(future)


def _code(prepared: PreparedRun, machine: Machine, limits: QuestionLimits) -> tuple[CodeState, str]:
    code = prepared.job.code
    if code is not None and code.kind == "http":
        return CodeState(remote=scrubbed(code.source)), ""
    if machine.code is not None:
        return git.read(machine.code.folder, limits)
    asked = Path(decisive_container(prepared.job).get("workingDir") or "")
    return git.read(asked if asked.is_absolute() and asked.is_dir() else prepared.file.parent, limits)


def _software(prepared: PreparedRun, machine: Machine, limits: QuestionLimits) -> Software:
    env = {**machine.base_env, **plain_env(decisive_container(prepared.job)), **prepared.settings.variables}
    return software(prepared.python.path, env, machine.directory, limits)


def software(python: str, env: Mapping[str, str], folder: Path, limits: QuestionLimits) -> Software:
    """The packages that programs of this interpreter have."""
    answer = ask([python, "-c", _PACKAGES], env, folder, limits, MOST_READ)
    try:
        return msgspec.json.decode(answer.out, type=Software)
    except msgspec.DecodeError:
        last = answer.problem.strip().rpartition("\n")[2]
        return Software(problem=f"{python} did not tell its packages: {last or 'no answer'}")


def this_machine() -> MachineRecord:
    system = os.uname()
    return MachineRecord(
        name=socket.gethostname(),
        system=f"{system.sysname} {system.release} {system.machine}",
        cpus=len(os.sched_getaffinity(0)),
        memory=memory(),
        gpus=tuple(gpus.visible()),
    )
