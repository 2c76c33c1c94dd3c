"""A prepared run: makes its directory, runs its tasks, reports every event, takes orders, returns its record."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import code, gpus, options_file, recording, tensorboard
from tfyard.local.loop import Loop, Watch
from tfyard.local.machine import machine, memory, shims
from tfyard.local.prepared import PreparedRun
from tfyard.local.run_control import SOCKET, Order, Reply, address
from tfyard.local.shortfalls import excess, missing_packages, shortfalls, stand_ins, unreachable_files
from tfyard.local.started_by_user import script_path
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.run_events import Ended, Note, Over, Phase, ResourceUsage, RunEvent, Started
from tfyard.model.run_record import RunRecord
from tfyard.node import interpreter
from tfyard.node.processes import ContainerCommand
from tfyard.overview.record import Recorder
from tfyard.overview.wording import harmless

if TYPE_CHECKING:
    from tfyard.local.mlflow import RunAtMLflow
    from tfyard.model import MLflow

LOOK_EVERY = 0.05
NO_ORDER = (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, *CORRUPT_JSON)
"""The client disconnected or sent no valid order."""


class Execution:
    """`watch` is called with each event; an exception that it raises ends the run. `for_screen`: log lines are
    skipped if there are more than a person could read."""

    def __init__(self, prepared: PreparedRun, watch: Watch, *, for_screen: bool = False) -> None:
        if prepared.settings.tensorboard is not None:
            tensorboard.check(prepared)
        self.prepared, self._watch, now = prepared, watch, datetime.now(UTC)
        self._keep = run_directory.kept()
        self.directory = RunDirectory.make(
            run_directory.HOME, prepared.job, now, lambda text: self._note("warning", text)
        )
        self._recorder = Recorder(self.directory.name, prepared.job, now, os.getpid(), prepared.resumes)
        self._is_tidy, self._has_started = False, asyncio.Event()
        self._at_mlflow: RunAtMLflow | None = None
        self._machine = machine(prepared, self.directory.path.resolve())
        interpreter.write_shims(prepared.python, shims(self._machine.directory))
        self._loop = Loop(prepared, self._machine, self.directory, self._emit, for_screen=for_screen)

    async def execute(self) -> RunRecord:
        """Runs until the job has ended and no process is left."""
        try:
            self._write_sources()
            self._fetch_code()
            self._record()
            self._announce()
            self._track()
            await self._run()
            return await self._finish()
        finally:
            if self._at_mlflow is not None:
                self._at_mlflow.close()
            self.directory.close()

    def _write_sources(self) -> None:
        for name, text in self.prepared.settings.sources.items():
            self.directory.source.mkdir(exist_ok=True)
            (self.directory.source / name).write_text(text, encoding="utf-8")

    def _fetch_code(self) -> None:
        """Fetches the code; if that fails, nothing is left of the run."""
        asked = self.prepared.job.code
        if asked is None or asked.kind == "folder":
            return
        try:
            with code.interruptible(asked.source):
                self._note("info", f"the code is fetched from {asked.source}")
                code.fetch(asked, self.directory.path / "code")
        except BaseException:
            self.prepared.ports.release()
            self.directory.discard()
            raise

    async def _run(self) -> None:
        try:
            beside = recording.beside(self.prepared, self._machine, self.directory, self._has_started)
            async with listening(self.directory.path, self), beside:
                if self._at_mlflow is not None:
                    self._go_on_in(await self._at_mlflow.begun())
                await self._loop.run(self._helpers())
        finally:
            self.prepared.ports.release()

    async def _finish(self) -> RunRecord:
        self._tidy()
        self._loop.save_status()
        now = datetime.now(UTC)
        record = self._record(ended=max(now, self._recorder.started))  # the clock may have been set back
        if self._at_mlflow is not None:
            await self._at_mlflow.end(record)
        self._emit(Over(record.phase, record.exit_code or 0, record.message, str(self.directory.path)))
        if record.expires is not None and record.ended is not None and record.expires <= record.ended:
            run_directory.sweep(record.ended)
        return record

    @property
    def interrupts(self) -> int:
        return self._loop.interrupts

    def interrupt(self, *, by_keyboard: bool = False) -> None:
        """The first call asks every task to stop, the second kills them. `by_keyboard`: see node/ending.py."""
        self._loop.interrupt(by_keyboard=by_keyboard)

    def pause(self) -> None:
        """Stops the processes of all tasks, as Ctrl-Z does, until `go_on`."""
        self._loop.pause()

    def go_on(self) -> None:
        self._loop.go_on()

    def stop(self) -> None:
        """Carries out `tfyard stop`: an interrupt, which is recorded as Stopped."""
        if not self.interrupts:
            self._recorder.stopped_as = "Stopped"
            self._note("warning", "stopped by `tfyard stop`; tasks end within their grace period")
            self.interrupt()

    def restart(self, task: str) -> bool:
        """Carries out `tfyard restart`. False: the task is not running."""
        return not self.interrupts and self._loop.restart(task)

    def starts(self, task: str) -> int:
        return self._recorder.starts(task)

    def _announce(self) -> None:
        job, path = self.prepared.job, self.directory.path
        if self.prepared.resumes:
            self._note("info", f"resumes {self.prepared.resumes}, with the same volumes")
        for text in self.prepared.notes:
            self._note("warning" if text.startswith("not the same") else "info", text)
        roles = ", ".join(f"{role.replicas} {role.name}" for role in job.roles if role.replicas)
        self._note("info", f"{job.name}: {roles}; python is {self.prepared.python}; logs in {path}/logs")
        self._note("info", "images are not used here: every task is a process of this machine")
        if missing := [*self.prepared.ignored, *shortfalls(job)]:
            self._note("warning", f"not supported here: {', '.join(missing)}")
        for text in (*excess(job, memory()), *self._missing_packages()):
            self._note("warning", text)
        for text in unreachable_files(job, self.prepared.file.parent):
            self._note("warning", text)
        self._announce_gpus()
        for name, directory in stand_ins(job, set(self.prepared.mounts)):
            volume = f"{run_directory.HOME}/volumes/{directory}"
            self._note("info", f"volume {name} is {volume}; --mount {name}=DIR uses another directory")
        for task in self.prepared.settings.attach:
            self._tell_how_to_start(task)

    def _track(self) -> None:
        wanted = self.prepared.job.mlflow
        if wanted is not None and wanted.uri:
            from tfyard.local.mlflow import RunAtMLflow  # 20 ms, which other runs do not need

            self._at_mlflow = RunAtMLflow(self.prepared, wanted.uri, self.directory, self._note)

    def _go_on_in(self, run: "MLflow | None") -> None:
        """Tells the run at MLflow to tasks that start from now on."""
        if run is not None:
            self._loop.job = replace(self.prepared.job, mlflow=run)

    def _tell_how_to_start(self, task: str) -> None:
        script = script_path(self.directory.path, task)
        self._note("info", f"start {task} yourself, with its environment: sh {quote(str(script))}")

    def _missing_packages(self) -> list[str]:
        code, folder = self.prepared.job.code, self._machine.code
        if code is None or folder is None or not code.requirements:
            return []
        self._note("info", "requirements: nothing is installed here, the active environment is used")
        return [*missing_packages(self.prepared.python, folder.folder / code.requirements)]

    def _announce_gpus(self) -> None:
        if self._machine.gpus:
            self._note("info", gpus.describe(self._machine.gpus))
        elif text := gpus.missing(self.prepared.job, gpus.visible(), asked=self.prepared.settings.gpus):
            self._note("warning", text)

    def _helpers(self) -> dict[str, ContainerCommand]:
        return self._tensorboard() | self._notebook()

    def _tensorboard(self) -> dict[str, ContainerCommand]:
        if self.prepared.settings.tensorboard is None:
            return {}
        port = self.prepared.ports.one()
        self._note("info", f"TensorBoard: http://127.0.0.1:{port}/")
        return {"tensorboard": tensorboard.command(self.prepared, port)}

    def _notebook(self) -> dict[str, ContainerCommand]:
        if self.prepared.notebook is None:
            return {}
        from tfyard.local import cluster_config  # 25 ms with render/, and few runs have a notebook

        port = self.prepared.ports.one()
        self._note(
            "info", f"Jupyter: http://127.0.0.1:{port}/ (its password is in {self.prepared.file.name})"
        )
        if text := cluster_config.missing_kernel(self.prepared):
            self._note("warning", text)
        return {"notebook": cluster_config.jupyter(self.prepared, port, self.directory.path.resolve())}

    def _note(self, level: str, text: str) -> None:
        self._emit(Note(level, harmless(text)))

    def _emit(self, event: RunEvent) -> None:
        self._recorder.note(event)
        is_step = self._recorder.has_preparations and isinstance(event, Started | Ended)
        if is_step or isinstance(event, Phase):
            self._record()
        elif isinstance(event, ResourceUsage):  # once a second
            self.directory.touch()
            if self._at_mlflow is not None:
                self._go_on_in(self._at_mlflow.look())
        elif isinstance(event, Started) and not self._is_tidy:
            asyncio.get_running_loop().call_soon(self._tidy)
            self._has_started.set()
        self._watch(event)
        if isinstance(event, Started) and event.start > 1 and event.task in self.prepared.settings.attach:
            self._tell_how_to_start(event.task)

    def _tidy(self) -> None:
        """Writes and removes files that no task needs, while the first tasks are starting."""
        if not self._is_tidy:
            self._is_tidy = True
            self.directory.write("job.yaml", formats.dump(self.prepared.job, "jobfile").text())
            self.directory.write(options_file.NAME, options_file.text(self.prepared), private=True)
            with suppress(OSError):  # what cannot be removed now is tried again by the next run
                run_directory.sweep(self._recorder.started)
                self._prune()

    def _prune(self) -> None:
        if gone := run_directory.prune(self._keep):
            limit = f"{run_directory.KEEP_VARIABLE} says how many are kept"
            self._note("info", f"removed {len(gone)} old run{'s'[: len(gone) != 1]} ({limit})")

    def _record(self, ended: datetime | None = None) -> RunRecord:
        mounts = {name: str(path.absolute()) for name, path in self.prepared.mounts.items()}
        record = self._recorder.record(self._loop.status, self.interrupts, ended)
        record = replace(record, mounts=mounts, trial=self.prepared.settings.trial)
        self.directory.record(record)
        return record


# --- orders of other tfyard processes: see run_control.py


class TakesOrders(Protocol):
    def stop(self) -> None: ...
    def restart(self, task: str) -> bool: ...
    def starts(self, task: str) -> int: ...


@asynccontextmanager
async def listening(directory: Path, run: TakesOrders) -> AsyncIterator[None]:
    """Listens for orders during the block, which does not wait for the socket."""
    server = asyncio.create_task(_listen(directory, run))
    try:
        yield
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)
        (directory / SOCKET).unlink(missing_ok=True)


async def _listen(directory: Path, run: TakesOrders) -> None:
    """The run continues without a socket where none is possible, and `tfyard stop` says so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*NO_ORDER, asyncio.CancelledError):  # at the end of the run
            order = msgspec.json.decode(await reader.readuntil(b"\n"), type=Order)
            await (_stop(run) if order.do == "stop" else _restart(run, order.tasks, writer))
        writer.close()

    with suppress(OSError), address(directory) as path:
        server = await asyncio.start_unix_server(serve, path)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()


async def _stop(run: TakesOrders) -> None:
    run.stop()
    await asyncio.Event().wait()  # cancelled after the run has recorded its end


async def _restart(run: TakesOrders, tasks: tuple[str, ...], writer: asyncio.StreamWriter) -> None:
    before = {task: run.starts(task) for task in tasks}
    refused = tuple(task for task in tasks if not run.restart(task))
    await _reply(writer, Reply(refused=refused))
    for task in tasks:
        if task not in refused:
            while run.starts(task) == before[task]:
                await asyncio.sleep(LOOK_EVERY)
            await _reply(writer, Reply(running=task))


async def _reply(writer: asyncio.StreamWriter, reply: Reply) -> None:
    writer.write(msgspec.json.encode(reply) + b"\n")
    await writer.drain()
