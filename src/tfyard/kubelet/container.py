"""One container of a pod: its runs one after another, with hooks and probes, and what is known of it."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from tfyard.kube import KubeError
from tfyard.kubelet import probes
from tfyard.kubelet.engine import Ended, Engine, Process
from tfyard.kubelet.log_times import LogTimes
from tfyard.kubelet.remote_command import ContainerConsole
from tfyard.kubelet.runtime import ContainerState, Exited, Running, Waiting
from tfyard.model import Manifest
from tfyard.model.exit_codes import SIGKILLED
from tfyard.node.containers import ContainerConfigError, MissingObject, NoCommand
from tfyard.node.logs import tail
from tfyard.node.memory import memory_limit
from tfyard.node.pod import RESTART_IN_PLACE
from tfyard.node.processes import Command

RETRY_CONFIG = 2.0
HEALTHY_AFTER = 600.0
"""Seconds of running after which the back-off of restarts begins anew, as in a kubelet."""
AFTER_HOOK = 2.0
"""Seconds that a container has to end when its preStop hook took the whole grace period."""
MESSAGE_BYTES = 4096
LOST = Ended(SIGKILLED)


class Home(Protocol):
    """What a container needs of its pod."""

    engine: Engine
    stopping: asyncio.Event
    address: str
    policy: str
    grace: float
    folder: Path
    id: str

    async def command(self, container: Manifest, message: Path) -> Command: ...
    def changed(self) -> None: ...
    def tell(self, reason: str, message: str, container: str = "", *, warning: bool = False) -> None: ...
    def missing(self, error: MissingObject) -> str: ...


class PodContainer:
    """`is_init`: it must succeed before the next one starts; `is_sidecar`: it runs until it is stopped;
    `is_ephemeral`: of `kubectl debug`; it runs once."""

    def __init__(
        self, spec: Manifest, home: Home, waiting: str, *, is_init: bool = False, is_ephemeral: bool = False
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
        self.process: Process | None = None
        self.console: ContainerConsole | None = None
        """While it runs, and if it has a stdin."""
        self._asked_to_end: Process | None = None
        self._failures = 0

    def state(self) -> ContainerState:
        is_done = self.is_init and not self.is_sidecar and self.exit_code == 0
        is_ready = is_done or (isinstance(self.current, Running) and self.is_ready)
        return ContainerState(self.current, self.restarts, is_ready, self.last, self.is_started)

    @property
    def exit_code(self) -> int | None:
        return self.current.code if isinstance(self.current, Exited) else None

    @property
    def has_ended(self) -> bool:
        """For good."""
        return self.exit_code is not None and not self._runs_again(self.exit_code)

    @property
    def is_running(self) -> bool:
        return self.process is not None and not self.process.ended.done()

    def log(self, run: int) -> Path:
        return self.home.folder / "logs" / self.name / f"{run}.log"

    # Its life.

    async def run(self) -> None:
        """Run it, again and again if its policy says so, until it has ended for good or the pod is stopped."""
        if self.has_ended:
            return  # before the kubelet was restarted
        while not self.home.stopping.is_set():
            command = await self._find_command()
            if command is None:
                return
            ended = await self._run_once(command)
            if not self._runs_again(ended.code):
                return
            await self._back_off(ended)
            if self.home.stopping.is_set():
                return
            self.last, self.restarts = ended, self.restarts + 1

    async def stop(self, grace: float) -> None:
        """Ask it to end, once; by force after the grace period. Called again, it may shorten that."""
        process = self.process
        if process is None or process.ended.done():
            return
        if self._asked_to_end is process:
            await asyncio.wait([process.ended], timeout=grace)
        elif grace:
            self._asked_to_end = process
            await self._ask_to_end(process, grace)
        self.home.engine.signal(process, signal.SIGKILL)
        await asyncio.wait([process.ended])

    async def _ask_to_end(self, process: Process, grace: float) -> None:
        end = asyncio.get_running_loop().time() + grace
        hook = (self.spec.get("lifecycle") or {}).get("preStop")
        if hook:
            await self._within(process, self._pre_stop(process, hook, grace), grace)
        self.home.engine.signal(process, signal.SIGTERM)
        rest = max(end - asyncio.get_running_loop().time(), AFTER_HOOK if hook else 0)
        await asyncio.wait([process.ended], timeout=rest)

    def lose(self, at: datetime) -> None:
        """It cannot have ended well, because nobody saw it; in the words of a kubelet."""
        message = "The container could not be located when the pod was terminated"
        self.current = Exited(LOST.code, at, at, "ContainerStatusUnknown", message)

    def _runs_again(self, code: int) -> bool:
        if self.home.stopping.is_set():
            return False
        for rule in self.spec.get("restartPolicyRules") or []:
            values = (rule.get("exitCodes") or {}).get("values") or []
            if (code in values) == ((rule.get("exitCodes") or {}).get("operator") == "In"):
                return True
        policy = str(self.spec.get("restartPolicy") or self.home.policy)
        if self.is_init and not self.is_sidecar and policy == "Always":
            policy = "OnFailure"
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    async def _back_off(self, ended: Exited) -> None:
        """The first restart is immediate; then it waits, longer each time."""
        if (ended.finished - ended.started).total_seconds() > HEALTHY_AFTER:
            self._failures = 0
        delay = replace(RESTART_IN_PLACE, failures=self._failures).delay()
        self._failures += 1
        if delay:
            said = f"back-off {delay:.0f}s restarting failed container={self.name} pod={self.home.id}"
            self.last, self.current = ended, Waiting("CrashLoopBackOff", said)
            self.home.changed()
            self.home.tell("BackOff", said.replace(f" {delay:.0f}s", ""), self.name, warning=True)
            await self.pause(delay)

    async def pause(self, seconds: float) -> None:
        """Shorter if the pod is stopped."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.home.stopping.wait()

    # One run.

    async def _find_command(self) -> Command | None:
        """Tried until it can be made: a ConfigMap may come later. None if the pod is stopped meanwhile."""
        message = self.home.folder / "messages" / f"{self.name}.{self.restarts}"
        while not self.home.stopping.is_set():
            try:
                return await self.home.command(self.spec, message)
            except (ContainerConfigError, KubeError, OSError) as error:
                if self.is_ephemeral and isinstance(error, NoCommand):
                    self._refuse(f"{error}; add one, such as `kubectl debug ... -- sh`")
                    return None
                self._wait_for(error)
            await self.pause(RETRY_CONFIG)
        return None

    def _refuse(self, problem: str) -> None:
        """Nobody can add a command later. It has ended, so that `kubectl debug` ends, too, and prints its log."""
        self._new_log().write_text(f"{problem}\n")
        now = datetime.now(UTC)
        self.current = Exited(128, now, now, "StartError", problem)
        self.home.changed()
        self.home.tell("Failed", f"Error: {problem}", self.name, warning=True)

    def _wait_for(self, error: Exception) -> None:
        is_config = not isinstance(error, (NoCommand, OSError))
        reason = "CreateContainerConfigError" if is_config else "CreateContainerError"
        message = self.home.missing(error) if isinstance(error, MissingObject) else str(error)
        if self.current != Waiting(reason, message):
            self.current = Waiting(reason, message)
            self.home.changed()
        self.home.tell("Failed", f"Error: {message}", self.name, warning=True)

    async def _run_once(self, command: Command) -> Exited:
        log = self._new_log()
        id = f"{self.home.id}/{self.name}/{self.restarts}"
        started = datetime.now(UTC)
        process = self.process = await self._start(id, command, log)
        watching = asyncio.create_task(self._attend(process, started))
        try:
            ended = await asyncio.shield(process.ended)
        finally:
            await _end(watching)
            if self.console is not None:
                await self.console.close()
                self.console = None
        self.is_ready = self.is_started = False
        self.current = self._exited(ended, started, log)
        self.home.changed()
        return self.current

    async def _start(self, id: str, command: Command, log: Path) -> Process:
        engine = self.home.engine
        limit = memory_limit(self.spec)
        if not self.spec.get("stdin"):
            return await engine.start(id, command, log, limit)
        attached = await engine.start_interactive(id, command, limit, tty=bool(self.spec.get("tty")))
        is_once = self.is_ephemeral or bool(self.spec.get("stdinOnce"))
        self.console = ContainerConsole(attached, log, is_once=is_once)
        return attached.process

    def _new_log(self) -> Path:
        """As a kubelet, it keeps the log of this run and of the one before."""
        log = self.log(self.restarts)
        log.parent.mkdir(parents=True, exist_ok=True)
        old = LogTimes(self.log(self.restarts - 2))
        for path in (old.log, old.index):
            path.unlink(missing_ok=True)
        log.touch()
        return log

    async def _attend(self, process: Process, started: datetime) -> None:
        """From its start to its end. Nobody can look after a container whose attendant has failed: it ends."""
        try:
            await self._start_and_probe(process, started)
        except Exception:
            self.home.engine.signal(process, signal.SIGKILL)
            raise

    async def _start_and_probe(self, process: Process, started: datetime) -> None:
        """The hook first, then the probes."""
        target = probes.Target(self.home.engine, process, self.spec, self.home.address)
        hook = (self.spec.get("lifecycle") or {}).get("postStart")
        if hook and (problem := await target.check(hook, probes.FOREVER)):
            self.home.tell("FailedPostStartHook", f"PostStartHook failed: {problem}", self.name, warning=True)
            await self.stop(self.home.grace)
            return
        self.current = Running(started)
        self.home.tell("Started", "Container started", self.name)
        await self._probe(target)

    def _exited(self, ended: Ended, started: datetime, log: Path) -> Exited:
        reason = "OOMKilled" if ended.is_out_of_memory else ""
        return Exited(ended.code, started, datetime.now(UTC), reason, self._message(ended, log))

    def _message(self, ended: Ended, log: Path) -> str:
        """What the container wrote for the purpose, else, if it is to be so, the end of a failed one's log."""
        path = self.home.folder / "messages" / f"{self.name}.{self.restarts}"
        message = path.read_bytes()[-MESSAGE_BYTES:].decode(errors="replace")
        by_log = self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        return tail(log) if not message and by_log and ended.code else message

    # Hooks and probes.

    async def _within(self, process: Process, work: Awaitable[None], seconds: float) -> None:
        """Until it is done, the container has ended, or the time is over."""
        task = asyncio.ensure_future(work)
        either: list[asyncio.Future[Any]] = [task, process.ended]
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        await _end(task)

    async def _pre_stop(self, process: Process, hook: Manifest, grace: float) -> None:
        target = probes.Target(self.home.engine, process, self.spec, self.home.address)
        if problem := await target.check(hook, grace):
            self.home.tell("FailedPreStopHook", f"PreStopHook failed: {problem}", self.name, warning=True)

    async def _probe(self, target: probes.Target) -> None:
        """The startup probe holds back the others, and whoever waits for the container to have started."""
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
            self.home.tell("ProbeNotSupported", probes.NOT_SUPPORTED, self.name, warning=True)
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
        self.home.tell("Unhealthy", f"{kind} probe failed: {problem}", self.name, warning=True)

    async def _kill(self, kind: str, probe: Manifest) -> None:
        said = f"Container {self.name} failed {kind} probe, will be restarted"
        self.home.tell("Killing", said, self.name)
        await self.stop(float(probe.get("terminationGracePeriodSeconds") or self.home.grace))


async def _end(task: "asyncio.Future[Any]") -> None:
    """Cancel it; if it has failed, that is an error of ours."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
