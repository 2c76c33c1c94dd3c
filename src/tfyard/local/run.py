"""A job run on this machine, from its start to its end: the spine in a loop, with an eye on logs and memory."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from re import Pattern

from msgspec import Struct

from tfyard import planner
from tfyard.backends.local.run_directory import LocalStore, RunDirectory
from tfyard.formats.loglines import read_line, storable
from tfyard.model import Decision, Event, Job, Status, run_events
from tfyard.node import logs, usage
from tfyard.node import node as local
from tfyard.node.processes import Command
from tfyard.planner import cleanup
from tfyard.spine import reconcile

LOOK_EVERY = 0.1
MEASURE_EVERY = 1.0
MEASURE_LIMITS_EVERY = 0.25

Watch = Callable[[run_events.Happening], None]


class Rehearsal(Struct, frozen=True):
    """A task to be taken away at a given time, as a cluster would by preemption."""

    task: str
    after: float


class LocalRun:
    def __init__(self, job: Job, site: planner.Site, machine: local.Machine, directory: RunDirectory) -> None:
        self.job, self.site, self.directory = job, site, directory
        self.kubelet = local.Kubelet(machine, self._on_container)
        self.store = LocalStore(directory, self._keep, self._on_event)
        self.interrupts = 0
        self.watch: Watch = lambda _happening: None
        self.pattern: Pattern[str] | None = None
        self.helpers: dict[str, Command] = {}
        """Processes that are no tasks: they end with the run, and nobody waits for them."""
        self._followers: dict[local.Started, logs.Follower] = {}
        self._phase = ""
        self._is_mapping_told = False
        self._cpu: dict[int, tuple[float, float]] = {}

    @property
    def status(self) -> Status:
        return self.kubelet.status

    def interrupt(self) -> None:
        """Once: ask everybody to stop. Twice: stop everybody."""
        self.interrupts += 1
        self.kubelet.stop_all(force=self.interrupts > 1)
        self.kubelet.changed()

    async def run(self, rehearsals: Iterable[Rehearsal] = ()) -> Status:
        """Until the job has ended and nobody is left."""
        async with self.kubelet.processes:
            for rehearsal in rehearsals:
                self.kubelet.later(rehearsal.after, lambda task=rehearsal.task: self._evict(task))  # type: ignore[misc]
            for name, command in self.helpers.items():
                self.kubelet.processes.start(name, command, self.directory.path.resolve() / f"{name}.log")
            watching = [asyncio.create_task(self._follow()), asyncio.create_task(self._measure())]
            try:
                await self._keep_going()
                await self._stop_everybody()
            finally:
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
                self._read_logs()
        return self.status

    async def _keep_going(self) -> None:
        while not self.interrupts:
            self.kubelet.change.clear()
            decision, _ = await reconcile(self.job, self.store, self.kubelet, self.site, datetime.now(UTC))
            self._tell(decision)
            if self.kubelet.is_deleted or (decision.status.is_finished and not await self._is_evaluating()):
                return
            self.kubelet.processes.check()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.kubelet.change.wait(), decision.wake_after)

    async def _is_evaluating(self) -> bool:
        observed = await self.kubelet.observe(self.job)
        return cleanup.grace_remaining(self.job, observed, self.status, datetime.now(UTC)) > 0

    async def _stop_everybody(self) -> None:
        """Whatever the clean-up policy keeps on a cluster, here nothing outlives the command."""
        if not self.interrupts:
            self.kubelet.stop_all(force=False)
        while self.kubelet.running():
            self.kubelet.change.clear()
            await self.kubelet.change.wait()

    # Telling what happens.

    def _keep(self, status: Status) -> None:
        self.kubelet.status = status

    def _tell(self, decision: Decision) -> None:
        status = decision.status
        if status.phase != self._phase:
            self._phase = status.phase
            condition = status.condition(status.phase)
            self.watch(run_events.Phase(status.phase, condition.message if condition else ""))
        if self.kubelet.mapping and not self._is_mapping_told:
            self._is_mapping_told = True
            pairs = ", ".join(f"{path} is {place}" for path, place in self.kubelet.mapping.items())
            self.watch(
                run_events.Note("info", f"mount paths in arguments and environment are rewritten: {pairs}")
            )
        roles = status.replica_statuses.items()
        ready = {name: role.ready for name, role in roles}
        self.watch(run_events.Counts(ready, {name: role.restarts for name, role in roles}))

    def _on_event(self, event: Event) -> None:
        if event.type == "Warning" and not self.status.is_finished:
            self.watch(run_events.Note("warning", event.message))

    def _on_container(self, told: local.Started | local.Ended) -> None:
        if isinstance(told, local.Started):
            source = told.task if told.container == "tensorflow" else f"{told.task}.{told.container}"
            self._followers[told] = logs.Follower(source, told.log)
            self.watch(run_events.Started(source, told.start, str(told.log)))
            return
        follower = self._followers.pop(told.started)
        self._show(follower.close())
        used, why = told.exit, self._why_stopped(told)
        self.watch(run_events.Ended(follower.source, used.code, told.reason, used.cpu, used.peak, why))

    def _why_stopped(self, told: local.Ended) -> str:
        if not told.is_stopped:
            return ""
        if self.status.is_finished:
            return "the job is over"
        if self.interrupts:
            return "the run was interrupted"
        return "it was taken away" if told.reason == "Preempted" else "its task is over"

    async def _follow(self) -> None:
        while True:
            self._read_logs()
            await asyncio.sleep(LOOK_EVERY)

    def _read_logs(self) -> None:
        for follower in list(self._followers.values()):
            self._show(follower.read())

    def _show(self, lines: Iterable[logs.Line | logs.Skipped]) -> None:
        for line in lines:
            if isinstance(line, logs.Skipped):
                self.watch(run_events.Skipped(line.source, line.lines))
                continue
            self.watch(run_events.Log(line.source, line.text))
            self._read_metric(line)

    def _read_metric(self, line: logs.Line) -> None:
        reading = read_line(line.text, self.pattern)
        if reading is None:
            return
        metric = run_events.Metric(
            task=line.source,
            values=reading.values,
            step=reading.step,
            total=reading.total,
            epoch=reading.epoch,
            epochs=reading.epochs,
        )
        row = {**storable(reading.values), "at": time.time(), "task": line.source, "step": reading.step}
        self.directory.append("metrics.jsonl", row)
        self.watch(metric)

    # Keeping an eye on the tasks.

    def _evict(self, task: str) -> None:
        known = self.kubelet.evict(task)
        text = f"rehearsal: {task} is taken away" if known else f"rehearsal: {task} is not running"
        self.watch(run_events.Note("warning", text))

    async def _measure(self) -> None:
        while True:
            limits = self.kubelet.memory_limits()
            await asyncio.sleep(MEASURE_LIMITS_EVERY if limits else MEASURE_EVERY)
            self._measure_once(limits)

    def _measure_once(self, limits: dict[str, float]) -> None:
        found, now, shown = usage.measure(), time.monotonic(), {}
        for pid, (id, task) in self.kubelet.pids().items():
            used = found.get(pid)
            if used is None:
                continue
            if used.memory > limits.get(id, float("inf")):
                self.kubelet.kill_for_memory(id)
            before, at = self._cpu.get(pid, (0.0, now - 1))
            self._cpu[pid] = (used.cpu, now)
            shown[task] = (max(0.0, used.cpu - before) / max(0.1, now - at), used.memory)
        self.watch(run_events.Usage(shown))
