"""A job on this machine from its start to its end: the spine in a loop, with an event for all that happens."""

import asyncio
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tfyard.backends.local.node import ContainerEnded, ContainerStarted, LineBegun, NodeEvent, PodWarning
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.backends.local.runner import PREEMPTED, RESTARTED, LocalRunner
from tfyard.backends.local.store import LocalStore
from tfyard.local.event_files import EventFiles
from tfyard.local.logs import RunLogReader
from tfyard.local.machine import Machine
from tfyard.local.prepared import PreparedRun
from tfyard.local.rehearsal import RESTART, Rehearsals
from tfyard.local.settings import Rehearsal
from tfyard.model import Decision, Event, Job, LastLine, Manifest, Status, Task, preparations, run_events
from tfyard.node.interpreter import Interpreter
from tfyard.node.logs import tail
from tfyard.node.processes import ContainerCommand
from tfyard.overview.cause import named
from tfyard.overview.parameters import decisive_container
from tfyard.overview.wording import on_this_machine, waiting
from tfyard.planner import cleanup
from tfyard.planner.leaders import deciding_task
from tfyard.spine import reconcile

READ_LOGS_EVERY = 0.1
READ_SUMMARIES_EVERY = 1.0
SHOW_WAIT_AFTER = 1.0
"""Seconds until the wait for the last tasks is shown; most tasks stop at once."""
SHOW_STEPS_AFTER = 30.0
"""Seconds that an init container may run before the screen says that tasks wait for it."""
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_ENDED = ("tensorflow.contrib", "tensorflow.examples")
_GONE = re.compile(r"AttributeError: module 'tensorflow' has no attribute '(\w+)'")
_OF_TENSORFLOW_1 = {
    "ConfigProto", "FixedLenFeature", "GPUOptions", "GraphDef", "InteractiveSession", "Session", "app", "assign",
    "contrib", "decode_raw", "estimator", "flags", "get_collection", "get_default_graph", "get_variable", "gfile",
    "global_variables", "global_variables_initializer", "initialize_all_variables", "layers", "log", "logging",
    "parse_single_example", "placeholder", "python_io", "random_normal", "random_uniform", "reset_default_graph",
    "set_random_seed", "to_float", "to_int32", "trainable_variables", "truncated_normal", "variable_scope",
}  # fmt: skip
"""Attributes that programs for TensorFlow 1 use first."""
_NO_INPUT = re.compile(r"^(?:EOFError: EOF when reading a line|bdb\.BdbQuit)$", re.MULTILINE)
"""The end of a program that reads standard input, or is in its debugger, where there is no input."""
_SAME_ID = re.compile(r"The same \w+ .*request was received twice")

Watch = Callable[[run_events.RunEvent], None]


class Loop:
    def __init__(
        self,
        prepared: PreparedRun,
        machine: Machine,
        directory: RunDirectory,
        watch: Watch,
        *,
        for_screen: bool = False,
    ) -> None:
        self.job, self._prepared, self._directory, self._watch = prepared.job, prepared, directory, watch
        self._machine, self.node = machine, machine.node(self._on_node_event)
        self._store = LocalStore(directory, self._on_job_event, prepared.memory)
        self._logs = RunLogReader(directory, watch, prepared.pattern, for_screen=for_screen)
        self._runner = LocalRunner(self.node, self._store, prepared.site, self._adapt, self._last_line)
        self._event_files, self._began = EventFiles(), time.time()
        self._rehearsals = Rehearsals(self._runner, self._warn)
        self._steps = {step for role in self.job.roles for step in preparations(role.template)}
        """Init containers of which it was not yet said that tasks wait for them."""
        self.interrupts = 0
        self._phase = ""
        self._has_reported_rewriting = self._has_hinted = False

    @property
    def status(self) -> Status:
        return self._store.status

    def interrupt(self, *, by_keyboard: bool = False) -> None:
        """The first call asks every task to stop, the second kills them."""
        self.interrupts += 1
        has_servers = self._prepared.is_from_config  # they have nothing to save, and `join` never sees SIGINT
        self._runner.stop_all(force=self.interrupts > 1, by_keyboard=by_keyboard and not has_servers)
        self.node.change.set()

    def pause(self) -> None:
        """Stops all processes until `go_on`."""
        self.node.engine.signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._logs.go_on()
        self.node.engine.signal_all(signal.SIGCONT)

    def restart(self, task: str) -> bool:
        """Restarts a task by evicting it, which costs no retry. False: the task is not running."""
        return self._rehearsals.evict(Rehearsal(task, 0.0), RESTART)

    def save_status(self) -> None:
        """Saves the status for a run that resumes this one."""
        self._store.save()

    async def run(self, helpers: Mapping[str, ContainerCommand]) -> None:
        """Runs until the job has ended and no process is left. Helpers are processes that are not tasks: they end
        with the run, and the run does not wait for them."""
        async with self.node:
            for rehearsal in self._prepared.rehearsals:
                self.node.later(rehearsal.after, partial(self._rehearsals.evict, rehearsal))
            for name, command in helpers.items():
                await self.node.engine.start(name, command, self._machine.directory / f"{name}.log")
            reading = asyncio.gather(self._read_logs(), self._read_summaries())
            try:
                await self._keep_going()
                await self._stop_all()
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
                while self._logs.read():
                    pass
                self._event_files.close()

    async def _keep_going(self) -> None:
        while not self.interrupts:
            self.node.change.clear()
            decision, _ = await reconcile(
                self.job, self._store, self._runner, self._prepared.site, datetime.now(UTC)
            )
            self._report(decision)
            if self._runner.is_deleted or (decision.status.is_finished and not await self._is_evaluating()):
                return
            self.node.engine.check()
            with suppress(TimeoutError):
                async with asyncio.timeout(decision.wake_after):
                    await self.node.change.wait()

    async def _is_evaluating(self) -> bool:
        observed = await self._runner.observe(self.job)
        return cleanup.grace_remaining(self.job, observed, self.status, datetime.now(UTC)) > 0

    async def _stop_all(self) -> None:
        """Stops all tasks: no process outlives the command, whatever the clean-up policy keeps on a cluster."""
        if not self.interrupts:
            self._runner.stop_all(force=False)
        self.node.later(SHOW_WAIT_AFTER, self._show_wait)
        while self.node.pods:
            self.node.change.clear()
            await self.node.change.wait()

    def _show_wait(self) -> None:
        """Names the tasks that the end of the run waits for, and how long at most."""
        now, ends = datetime.now(UTC), [each.deleting for each in self.node.pods.values()]
        names = [*self._runner.tasks().values()]
        left = max(((end - now).total_seconds() for end in ends if end), default=0.0)
        if names and left > 0:
            self._watch(run_events.Note("info", waiting(names, left)))

    async def _read_logs(self) -> None:
        heard = 0.0
        while True:
            is_behind = self._logs.read()
            if heard != self._logs.heard_at and self.status.has("Stalled"):
                self.node.change.set()
            heard = self._logs.heard_at
            await asyncio.sleep(0 if is_behind else READ_LOGS_EVERY)

    async def _read_summaries(self) -> None:
        while True:
            await asyncio.sleep(READ_SUMMARIES_EVERY)
            tasks = self._runner.tasks()
            self._event_files.find({pid: tasks[uid] for pid, uid in self.node.sessions().items()})
            self._report_summaries()

    def _search_summaries(self, task: str) -> None:
        """Finds the summaries of a program that was too short for `_read_summaries`. If there are several tasks,
        they are those of the one that decides the job: the others write none, or the same."""
        deciding = deciding_task(self.job)
        if deciding and deciding.name == task and not self._logs.has_metrics(task):
            self._event_files.search(dict.fromkeys(self._folders()), self._began, task)

    def _folders(self) -> Iterator[Path]:
        """The folders in which a program may leave files: its working directory, volumes, those of its command."""
        container, sources = decisive_container(self.job), self._machine.sources
        words = (*(container.get("command") or ()), *(container.get("args") or ()))
        values = (str(word).rpartition("=")[2] for word in words)
        code = [str(self._machine.code.folder)] if self._machine.code else []
        places = (
            *code,
            container.get("workingDir") or "",
            *(each for each in values if each.startswith("/")),
        )
        yield from (Path(place) for place in places if place)
        yield from (self._directory.work, sources.lasting, *sources.given.values())

    def _report_summaries(self, task: str | None = None) -> None:
        """Reports new metrics of all tasks, or the last ones of a task that has ended."""
        for metric in self._event_files.read(task):
            self._logs.report(*metric)

    def _last_line(self, uid: str, container: str) -> LastLine | None:
        """None for a task that the user starts in another terminal, where its lines are."""
        is_started_by_user = self._runner.tasks().get(uid) in self._machine.started_by_user
        return None if is_started_by_user else self._logs.last_line(uid, container)

    def _adapt(self, pod: Manifest, task: Task) -> Manifest:
        return self._machine.left_to_user(self._machine.adapted(pod, task), task, self.node)

    # Events.

    def _report(self, decision: Decision) -> None:
        status = decision.status
        if status.phase != self._phase:
            self._phase = status.phase
            condition = status.condition(status.phase)
            text = on_this_machine(condition.message) if condition else ""
            self._watch(run_events.Phase(status.phase, text))
        rewritten = self.node.rewritten_paths()
        if rewritten and not self._has_reported_rewriting:
            self._has_reported_rewriting = True
            pairs = ", ".join(f"{path} is {directory}" for path, directory in rewritten.items())
            text = f"mount paths in arguments and environment are rewritten: {pairs}"
            self._watch(run_events.Note("info", text))
        roles = status.replica_statuses.items()
        ready = {name: role.ready for name, role in roles}
        self._watch(run_events.Counts(ready, {name: role.restarts for name, role in roles}))

    def _on_job_event(self, event: Event) -> None:
        if event.type == "Warning" and not self.status.is_finished:
            self._warn(on_this_machine(event.message))

    def _warn(self, text: str) -> None:
        self._watch(run_events.Note("warning", text))

    def _on_node_event(self, event: NodeEvent) -> None:
        if isinstance(event, ContainerStarted):
            self._logs.open(event)
            if event.container in self._steps:
                self.node.later(SHOW_STEPS_AFTER, partial(self._show_step, event.container))
            self._watch(run_events.Started(event.log_name, event.start, str(event.log)))
        elif isinstance(event, ContainerEnded):
            self._logs.close(event.started)
            self._search_summaries(event.started.log_name)
            self._report_summaries(event.started.log_name)
            name, exit, why = event.started.log_name, event.exit, self._why_stopped(event)
            self._watch(run_events.Ended(name, exit.code, event.reason, exit.cpu, exit.peak, why))
            self._hint(event)
            self._rehearsals.ended(event, is_job_finished=self.status.is_finished)
        elif isinstance(event, LineBegun):
            self._logs.begun(event.started, event.line)
        elif isinstance(event, PodWarning):
            self._warn(f"{event.pod}: {event.text}")
        else:
            tasks = self._runner.tasks()
            uses = {tasks[uid]: (use.cpus, use.memory) for uid, use in event.uses.items() if uid in tasks}
            self._watch(run_events.ResourceUsage(uses))

    def _show_step(self, step: str) -> None:
        """Names, once, the tasks whose init container still runs: nothing else on the screen says what they wait
        for."""
        tasks = self._runner.held_by(step)
        if step in self._steps and tasks:
            self._steps.remove(step)
            wait = "waits" if len(tasks) == 1 else "wait"
            text = f"{named(tasks)} {wait} for the init container {step}"
            self._watch(run_events.Note("info", f"{text}, which has run for {SHOW_STEPS_AFTER:.0f} s"))

    def _hint(self, event: ContainerEnded) -> None:
        """Shows one hint for all tasks: they have the same program."""
        if event.exit.code and not self._has_hinted:
            log = tail(event.started.log)
            text = hint(self._prepared.python, log, tf1=self._prepared.job.tf1)
            text = text or (no_input(self._prepared.job) if _NO_INPUT.search(log) else "")
            self._has_hinted = bool(text)
            if text:
                self._watch(run_events.Note("warning", text))

    def _why_stopped(self, event: ContainerEnded) -> str:
        if not event.is_stopped:
            return ""
        if self.status.is_finished:
            return "the job has ended"
        if self.interrupts:
            return "the run was interrupted"
        words = {PREEMPTED: "it was preempted", RESTARTED: "it is restarted"}
        return words.get(event.reason, "its task has ended")


def no_input(job: Job) -> str:
    """Why no task of the run has a standard input, and what to do; empty if there is only one task."""
    tasks = [task.name for task in job.tasks()]
    why = f"standard input is for runs with a single task, and {job.name} has {len(tasks)}"
    return (
        f"{why}; --attach {tasks[0]} lets you start that task in a terminal of its own" if tasks[1:] else ""
    )


def hint(interpreter: Interpreter, log: str, *, tf1: bool) -> str:
    """Cause of a failure by the last lines of the task's log, and the fix; empty: not known. `tf1`: the program
    already gets TensorFlow 1."""
    missing, gone = _MISSING.search(log), _GONE.search(log)
    is_of_tf1 = missing is not None and missing[1].startswith(_ENDED)
    if not tf1 and (is_of_tf1 or (gone is not None and gone[1] in _OF_TENSORFLOW_1)):
        return "the program is written for TensorFlow 1: run it with --tf1 (job file: `tf1: true`)"
    if missing is not None:
        way_out = "activate the environment that has it, or name its interpreter with --python"
        return f"python is {interpreter}, which does not find {missing[1]}; {way_out}"
    if _SAME_ID.search(log):
        # TensorFlow numbers steps by random generators that have seeds of 32 bits, and compares the last 100,000.
        text = "TensorFlow gave two steps the same id, which happens about once in 40,000"
        return f"{text}; with `restart: on-failure`, the task would have been restarted"
    return ""
