"""A prepared run: makes its directory, runs its tasks, reports every event, and returns its record."""

import os
import shutil
from datetime import UTC, datetime

from tfyard import formats
from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import code, gpus, tensorboard
from tfyard.local.attach import script_path
from tfyard.local.loop import Loop, Watch
from tfyard.local.machine import machine
from tfyard.local.prepared import Prepared
from tfyard.local.shortfalls import shortfalls, stand_ins
from tfyard.model.run_events import Note, Over, Phase, RunEvent
from tfyard.node.processes import Command
from tfyard.overview.record import Recorder, RunRecord


class Run:
    """`watch` is called with each event; what it raises ends the run."""

    def __init__(self, prepared: Prepared, watch: Watch) -> None:
        if prepared.settings.tensorboard:
            tensorboard.check(prepared)
        self.prepared, self._watch, now = prepared, watch, datetime.now(UTC)
        run_directory.sweep(now)
        self.directory = RunDirectory.make(
            run_directory.HOME, prepared.job, now, lambda text: self._note("warning", text)
        )
        self._recorder = Recorder(self.directory.name, prepared.job, now, os.getpid())
        self.directory.write("job.yaml", formats.dump(prepared.job, "jobfile").text())
        if prepared.job.code is not None:
            code.fetch(prepared.job.code, self.directory.path / "code")
        self._machine = machine(prepared, self.directory.path.resolve())
        self._loop = Loop(prepared, self._machine, self.directory, self._emit)

    async def execute(self) -> RunRecord:
        """Until the job has ended and no process is left."""
        self._record()
        self._announce()
        await self._loop.run(self._helpers())
        self.prepared.ports.release()
        shutil.rmtree(self._loop.node.scratch, ignore_errors=True)
        record = self._record(ended=datetime.now(UTC))
        self._emit(Over(record.phase, record.exit_code or 0, record.message, str(self.directory.path)))
        if record.expires is not None and record.ended is not None and record.expires <= record.ended:
            run_directory.sweep(record.ended)
        return record

    @property
    def interrupts(self) -> int:
        return self._loop.interrupts

    def interrupt(self) -> None:
        """The first call asks every task to stop, the second kills them."""
        self._loop.interrupt()

    def _announce(self) -> None:
        job, path = self.prepared.job, self.directory.path
        roles = ", ".join(f"{role.replicas} {role.name}" for role in job.roles if role.replicas)
        self._note("info", f"{job.name}: {roles}; logs in {path}/logs")
        self._note("info", "images are not used here: every task is a process of this machine")
        if missing := shortfalls(job):
            self._note("warning", f"not supported here: {', '.join(missing)}")
        self._announce_gpus()
        for name, directory in stand_ins(job, set(self.prepared.mounts)):
            volume = f"{run_directory.HOME}/volumes/{directory}"
            self._note("info", f"volume {name} is {volume}; --mount {name}=DIR uses another directory")
        for task in self.prepared.settings.attach:
            self._note("info", f"start {task} yourself, with its environment: sh {script_path(path, task)}")

    def _announce_gpus(self) -> None:
        if self._machine.gpus:
            self._note("info", gpus.describe(self._machine.gpus))
        elif text := gpus.missing(self.prepared.job, gpus.visible(), asked=self.prepared.settings.gpus):
            self._note("warning", text)

    def _helpers(self) -> dict[str, Command]:
        if not self.prepared.settings.tensorboard:
            return {}
        port = self.prepared.ports.one()
        self._note("info", f"TensorBoard: http://127.0.0.1:{port}/")
        return {"tensorboard": tensorboard.command(self.prepared, port)}

    def _note(self, level: str, text: str) -> None:
        self._emit(Note(level, text))

    def _emit(self, event: RunEvent) -> None:
        self._recorder.note(event)
        if isinstance(event, Phase):
            self._record()
        self._watch(event)

    def _record(self, ended: datetime | None = None) -> RunRecord:
        record = self._recorder.record(self._loop.status, self.interrupts, ended)
        self.directory.record(record)
        return record
