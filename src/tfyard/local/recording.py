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
from tfyard.model.origin import CodeState, MachineRecord, Origin, Software
from tfyard.model.secrecy import scrubbed
from tfyard.overview.job_record import told_software
from tfyard.overview.parameters import command, decisive_container, parameters, plain_env, with_values

T = TypeVar("T")
FILE, DIFF = "record.json", "code.diff"
LONGEST = 10.0
"""Seconds for git, and for the packages."""
LONGEST_AFTER = 2.0
"""Seconds that the end of a run waits for them."""
MOST_READ = 1 << 20
PACKAGES = Path(__file__).parents[1] / "render" / "scripts" / "packages.py"
"""The script that also runs in pods. It is read as a file, because the import of render/ takes 10 ms."""


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
        parameters=_parameters(prepared),
        code=code,
        software=software,
        machine=this_machine(),
    )
    directory.write(FILE, msgspec.json.format(msgspec.json.encode(origin)).decode(), private=True)
    if diff:
        directory.write(DIFF, diff, private=True)


def _parameters(prepared: PreparedRun) -> dict[str, str]:
    settings = prepared.settings
    values = settings.trial.values if settings.trial else settings.values
    return with_values(parameters(prepared.job, settings.variables), values)


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
    state, diff = CodeState(), ""
    for folder in _code_folders(prepared):
        state, diff = git.read(folder, limits)
        if state.root:
            break
    return state, diff


def _code_folders(prepared: PreparedRun) -> tuple[Path, Path]:
    """The folders whose tree may be that of the code: the working directory, and the folder of the script, which
    goes first if it is elsewhere."""
    container = decisive_container(prepared.job)
    directory = Path(container.get("workingDir") or "")
    folder = (directory if directory.is_absolute() and directory.is_dir() else prepared.file.parent).resolve()
    words = map(str, (*(container.get("command") or ()), *(container.get("args") or ())))
    scripts = (folder / word for word in words if word.endswith(".py"))
    # Path.is_file raises an error for a word that is too long for a name, such as a script of a shell
    script = next((each for each in scripts if os.path.isfile(each)), folder / "none").resolve()  # noqa: PTH113
    return (folder, script.parent) if script.is_relative_to(folder) else (script.parent, folder)


def _software(prepared: PreparedRun, machine: Machine, limits: QuestionLimits) -> Software:
    env = {**machine.base_env, **plain_env(decisive_container(prepared.job)), **prepared.settings.variables}
    return software(prepared.python.path, env, machine.directory, limits)


def software(python: str, env: Mapping[str, str], folder: Path, limits: QuestionLimits) -> Software:
    """The packages that programs of this interpreter have."""
    answer = ask([python, "-c", PACKAGES.read_text(encoding="utf-8")], env, folder, limits, MOST_READ)
    last = answer.problem.strip().rpartition("\n")[2] or "no answer"
    unknown = Software(problem=f"{python} did not tell its packages: {last}")
    return told_software(answer.out.decode(errors="replace")) or unknown


def this_machine() -> MachineRecord:
    system = os.uname()
    return MachineRecord(
        name=socket.gethostname(),
        system=f"{system.sysname} {system.release} {system.machine}",
        cpus=len(os.sched_getaffinity(0)),
        memory=memory(),
        gpus=tuple(gpus.visible()),
    )
