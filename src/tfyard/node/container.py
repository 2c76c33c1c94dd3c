"""One container of a pod: its runs one after another, with hooks and probes, and its state."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.model import Manifest
from tfyard.model.backoff import Backoff
from tfyard.model.container_reasons import CRASH_LOOP, STATUS_UNKNOWN
from tfyard.model.exit_codes import SIGKILLED, restarts_in_place

from . import ending, probes
from .console import ContainerConsole
from .containers import NoCommand
from .engine import ContainerProcess
from .logs import tail
from .memory import memory_limit
from .node import ContainerHost
from .processes import ContainerCommand, Exit
from .states import ContainerState, Exited, Running, Waiting, lost

RESTART_IN_PLACE = Backoff(first=1.0, longest=60.0)
"""The first restart in place is immediate. Kubelets and operators wait ten times as long; a person at a terminal
should not have to."""
RETRY_CONFIG = 2.0
HEALTHY_AFTER = 600.0
"""Seconds of running after which the back-off of restarts begins anew, as in a kubelet."""
AFTER_HOOK = 2.0
"""Seconds that a container has to end when its preStop hook took the whole grace period."""
MESSAGE_BYTES = 4096
START_FAILED = 128
"""The exit code that containerd gives to a container whose program could not be started."""


class PodContainer:
    """A container of a pod. `is_init`: it must succeed before the next one starts; `is_sidecar`: it runs until it
    is stopped; `is_ephemeral`: `kubectl debug` has added it, and it runs once."""

    def __init__(
        self,
        spec: Manifest,
        home: ContainerHost,
        waiting: str,
        *,
        is_init: bool = False,
        is_ephemeral: bool = False,
    ) -> None:
        self.spec, self.home, self.is_init, self.is_ephemeral = spec, home, is_init, is_ephemeral
        self.name = str(spec["name"])
        self.is_sidecar = is_init and spec.get("restartPolicy") == "Always"
        self.current: Waiting | Running | Exited = Waiting(waiting)
        self.last: Exited | None = None
        self.restarts = 0
        self.is_ready = self.is_started = False
        self.started = asyncio.Event()
        """Set when it runs and its startup probe, if it has one, has succeeded."""
        self.process: ContainerProcess | None = None
        self.log: Path | None = None
        """Log of the last run."""
        self.console: ContainerConsole | None = None
        """Set while the container runs, if it has a stdin."""
        self._run = 0
        """Number of the current run; `restarts` follows when that has started, as in a kubelet."""
        self._asked_to_end: ContainerProcess | None = None
        self._before: Exited | None = None
        self._failures = 0
        self._is_due = False
        """The container ran under an earlier kubelet, and has to run again."""

    def adopt(self, ended: Exited | None, last: Exited | None, restarts: int, *, runs_again: bool) -> None:
        """Continue from the ends that an earlier kubelet reported. `ended` is None while the next run is due."""
        self.current, self.last, self.restarts = ended or self.current, last, restarts
        self._is_due = runs_again

    def state(self) -> ContainerState:
        is_done = self.is_init and not self.is_sidecar and self.exit_code == 0
        is_ready = is_done or (isinstance(self.current, Running) and self.is_ready)
        is_backing_off = isinstance(self.current, Waiting) and self.current.reason == CRASH_LOOP
        due = is_backing_off or (self.exit_code is not None and not self.has_ended)
        return ContainerState(self.current, self.restarts, is_ready, self.last, self.is_started, due)

    @property
    def exit_code(self) -> int | None:
        return self.current.code if isinstance(self.current, Exited) else None

    @property
    def has_ended(self) -> bool:
        """Whether it has ended and will not be restarted."""
        return self.exit_code is not None and not self._runs_again(self.exit_code)

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.ended.done()

    @property
    def _message_file(self) -> Path:
        return self.home.owner.folder / "messages" / f"{self.name}.{self._run}"

    # Its life.

    async def run(self) -> None:
        """Run it, with the restarts that its policy asks for, until it has ended or the pod is stopped."""
        if self._is_due:
            self.last = self.current if isinstance(self.current, Exited) else self.last
            self.restarts += 1
        elif self.has_ended:
            return  # it ended before the kubelet was restarted
        self._run = self.restarts
        while not self.home.stopping.is_set():
            command = await self._find_command()
            if command is None:
                return
            ended = await self._run_once(command)
            if not self._runs_again(ended.code):
                return
            if not self.home.owner.may_restart(self.name):
                await self.home.stopping.wait()
                return
            await self._back_off(ended)
            if self.home.stopping.is_set():
                return
            self._before, self._run = ended, self._run + 1

    async def stop(self, grace: float, *, by_keyboard: bool = False) -> None:
        """Ask it to end, once, and kill it after the grace period. A second call may shorten that. `by_keyboard`:
        by the signals of Ctrl-C."""
        process = self.process
        if process is None or process.ended.done():
            return
        if self._asked_to_end is process:
            await asyncio.wait([process.ended], timeout=grace)
        elif grace:
            self._asked_to_end = process
            await self._ask_to_end(process, grace, by_keyboard=by_keyboard)
        self.home.engine.signal(process, signal.SIGKILL)
        await asyncio.wait([process.ended])

    async def _ask_to_end(self, process: ContainerProcess, grace: float, *, by_keyboard: bool) -> None:
        end = asyncio.get_running_loop().time() + grace
        hook = self._hook("preStop")
        if hook:
            await self._within(process, self._pre_stop(process, hook, grace), grace)
        seconds = max(end - asyncio.get_running_loop().time(), AFTER_HOOK if hook else 0)
        await ending.ask(self.home.engine, process, seconds, by_keyboard=by_keyboard)

    def lose(self, at: datetime) -> None:
        """Mark it as killed, in a kubelet's words, because its end was not seen."""
        message = "The container could not be located when the pod was terminated"
        self.current = Exited(SIGKILLED, at, at, STATUS_UNKNOWN, message)

    def _runs_again(self, code: int) -> bool:
        if self.home.stopping.is_set():
            return False
        for rule in self.spec.get("restartPolicyRules") or []:
            values = (rule.get("exitCodes") or {}).get("values") or []
            if (code in values) == ((rule.get("exitCodes") or {}).get("operator") == "In"):
                return True
        own = str(self.spec.get("restartPolicy") or "")
        return restarts_in_place(self.home.policy, code, own, is_init=self.is_init)

    async def _back_off(self, ended: Exited) -> None:
        """Wait before a restart, longer each time; the first restart is immediate."""
        if (ended.finished - ended.started).total_seconds() > HEALTHY_AFTER:
            self._failures = 0
        delay = replace(RESTART_IN_PLACE, failures=self._failures).delay()
        self._failures += 1
        if delay:
            message = f"back-off {delay:.0f}s restarting failed container={self.name} pod={self.home.id}"
            self.last, self.current = ended, Waiting(CRASH_LOOP, message)
            self.home.changed()
            self._warn("BackOff", message.replace(f" {delay:.0f}s", ""))
            await self.pause(delay)

    async def pause(self, seconds: float) -> None:
        """Sleep, at most until the pod is stopped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.home.stopping.wait()

    # One run.

    async def _find_command(self) -> ContainerCommand | None:
        """Retry until the command can be made: a ConfigMap may come later. None if the pod is stopped first."""
        while not self.home.stopping.is_set():
            try:
                return await self.home.command(self.spec, self._message_file)
            except (TfyardError, OSError) as error:
                if self.is_ephemeral and isinstance(error, NoCommand):
                    self._refuse(f"{error}; add one, such as `kubectl debug ... -- sh`")
                    return None
                self._wait_for(error)
            await self.pause(RETRY_CONFIG)
        return None

    def _refuse(self, problem: str) -> None:
        """End it, because no command can be added later: `kubectl debug` then ends, too, and prints its log."""
        self._new_log().write_text(f"{problem}\n")
        now = datetime.now(UTC)
        self.current = Exited(START_FAILED, now, now, "StartError", problem)
        self.home.changed()
        self._warn("Failed", f"Error: {problem}")

    def _wait_for(self, error: Exception) -> None:
        is_config = not isinstance(error, (NoCommand, OSError))
        waiting = Waiting("CreateContainerConfigError" if is_config else "CreateContainerError", str(error))
        if self.current != waiting:
            self.current = waiting
            self.home.changed()
        self._warn("Failed", f"Error: {error}")

    async def _run_once(self, command: ContainerCommand) -> Exited:
        owner, log = self.home.owner, self._new_log()
        self._message_file.touch()
        started = datetime.now(UTC)
        process = self.process = await self._start(command, log)
        if self.home.stopping.is_set():  # `stop` has found no process, because it was being started
            self.home.engine.signal(process, signal.SIGKILL)
        owner.started(self.name, log)
        watching = asyncio.create_task(self._attend(process, started))
        try:
            exit = await asyncio.shield(process.ended)
        finally:
            await _end(watching)
            if self.console is not None:
                await self.console.close()
                self.console = None
        self._count_run()
        self.is_ready = self.is_started = False
        self.current = ended = self._exited(exit, started, log)
        owner.ended(self.name, replace(exit, code=ended.code), ended.why)
        self.home.changed()
        return ended

    def _count_run(self) -> None:
        """Count a restart when its run has started: the run before is the last one now."""
        if self._run > self.restarts:
            self.last, self.restarts, self.current = self._before, self._run, Waiting("ContainerCreating")

    async def _start(self, command: ContainerCommand, log: Path) -> ContainerProcess:
        engine, limit = self.home.engine, memory_limit(self.spec)
        id = f"{self.home.name}/{self.home.uid}/{self.name}/{self._run}"
        if command.stdin or not self.spec.get("stdin"):
            return await engine.start(id, command, log, limit)
        streamed = await engine.start_interactive(id, command, limit, tty=bool(self.spec.get("tty")))
        is_once = self.is_ephemeral or bool(self.spec.get("stdinOnce"))
        self.console = ContainerConsole(streamed, log, is_once=is_once)
        return streamed.process

    def _new_log(self) -> Path:
        self.log = self.home.owner.new_log(self.name, self._run)
        self.log.touch()
        return self.log

    async def _attend(self, process: ContainerProcess, started: datetime) -> None:
        """Run hook and probes. If this task fails, the container is killed."""
        try:
            await self._start_and_probe(process, started)
        except Exception:
            self.home.engine.signal(process, signal.SIGKILL)
            raise

    async def _start_and_probe(self, process: ContainerProcess, started: datetime) -> None:
        """Run the postStart hook first, then the probes."""
        if not await self.home.engine.started(process):
            return
        self._count_run()
        target = probes.Target(self.home.engine, process, self.spec, self.home.address)
        hook = self._hook("postStart")
        if hook and (problem := await target.check(hook, probes.FOREVER)):
            self._warn("FailedPostStartHook", f"PostStartHook failed: {problem}")
            await self.stop(self.home.grace)
            return
        self.current = Running(started)
        self.home.owner.tell("Started", "Container started", self.name)
        await self._probe(target)

    def _exited(self, exit: Exit, started: datetime, log: Path) -> Exited:
        if exit.is_lost:
            return lost(started)
        if exit.problem:
            return Exited(START_FAILED, started, datetime.now(UTC), "StartError", exit.problem)
        reason = "OOMKilled" if exit.is_out_of_memory else ""
        return Exited(exit.code, started, datetime.now(UTC), reason, self._message(exit, log))

    def _message(self, exit: Exit, log: Path) -> str:
        """The termination message, or, by its policy, the end of the log of a container that failed."""
        message = self._message_file.read_bytes()[-MESSAGE_BYTES:].decode(errors="replace")
        by_log = self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        return tail(log) if not message and by_log and exit.code else message

    # Hooks and probes.

    def _hook(self, kind: str) -> Manifest | None:
        return (self.spec.get("lifecycle") or {}).get(kind)

    async def _within(self, process: ContainerProcess, work: Awaitable[None], seconds: float) -> None:
        """Wait until the work is done, the container has ended, or the time is over."""
        task = asyncio.ensure_future(work)
        either: list[asyncio.Future[Any]] = [task, process.ended]
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        await _end(task)

    async def _pre_stop(self, process: ContainerProcess, hook: Manifest, grace: float) -> None:
        target = probes.Target(self.home.engine, process, self.spec, self.home.address)
        if problem := await target.check(hook, grace):
            self._warn("FailedPreStopHook", f"PreStopHook failed: {problem}")

    async def _probe(self, target: probes.Target) -> None:
        """Run the probes. The others wait for the startup probe, and so does the pod for a sidecar."""
        if not await self._has_started(target):
            return
        self.is_started = True
        self.started.set()
        readiness = self._usable("readinessProbe")
        self.is_ready = not readiness
        self.home.changed()
        jobs = [probes.repeat(readiness, target, self._set_ready)] if readiness else []
        if liveness := self._usable("livenessProbe"):
            jobs.append(probes.repeat(liveness, target, self._judge_liveness))
        await asyncio.gather(*jobs)

    def _usable(self, kind: str) -> Manifest | None:
        probe: Manifest | None = self.spec.get(kind)
        if probe and "grpc" in probe:
            self._warn("ProbeNotSupported", probes.NOT_SUPPORTED)
            return None
        return probe

    async def _has_started(self, target: probes.Target) -> bool:
        probe = self._usable("startupProbe")
        self.home.changed()
        if not probe:
            return True
        first: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        async def judge(is_good: bool, problem: str) -> None:
            if not first.done():
                first.set_result(is_good)
            if not is_good:
                self._tell_unhealthy("Startup", problem)

        probing = asyncio.create_task(probes.repeat(probe, target, judge))
        try:
            is_good = await first
        finally:
            await _end(probing)
        if not is_good:
            await self._kill("startup", probe)
        return is_good

    async def _set_ready(self, is_good: bool, problem: str) -> None:
        if problem:
            self._tell_unhealthy("Readiness", problem)
        if self.is_ready != is_good:
            self.is_ready = is_good
            self.home.changed()

    async def _judge_liveness(self, is_good: bool, problem: str) -> None:
        if not is_good:
            self._tell_unhealthy("Liveness", problem)
            await self._kill("liveness", self.spec["livenessProbe"])

    def _tell_unhealthy(self, kind: str, problem: str) -> None:
        self._warn("Unhealthy", f"{kind} probe failed: {problem}")

    def _warn(self, reason: str, message: str) -> None:
        self.home.owner.tell(reason, message, self.name, warning=True)

    async def _kill(self, kind: str, probe: Manifest) -> None:
        message = f"Container {self.name} failed {kind} probe, will be restarted"
        if self.home.policy == "Never":  # a kubelet then ends the whole pod, and gives no cause
            message = f"Stopping container {self.name}"
        self.home.owner.tell("Killing", message, self.name)
        await self.stop(float(probe.get("terminationGracePeriodSeconds") or self.home.grace))


async def _end(task: "asyncio.Future[Any]") -> None:
    """Cancel a task; if it has failed, raise its error."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
