"""A prepared run, from its first line on the screen to its last."""

import asyncio
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

import click

from tfyard import formats
from tfyard.backends.local import run_directory
from tfyard.cli import screen
from tfyard.cli.screen.summary import summary
from tfyard.errors import Usage
from tfyard.local import code, prepare
from tfyard.local.record import Recorder
from tfyard.local.run import LocalRun, Watch
from tfyard.local.shortfalls import shortfalls, stand_ins
from tfyard.model import tensorflow_container
from tfyard.model.run_events import Happening, Note, Over, Phase
from tfyard.node.containers import rewrite
from tfyard.node.processes import Command


async def execute(prepared: prepare.Prepared) -> int:
    settings, job, now = prepared.settings, prepared.job, datetime.now(UTC)
    run_directory.sweep(now)
    recorder = Recorder(job, prepared.file)
    tasks = [task.name for task in job.tasks()]
    view = screen.choose(settings.output, tasks, recorder.progress, quiet=settings.quiet)

    def watch(happening: Happening) -> None:
        recorder.note(happening)
        if isinstance(happening, Phase):
            directory.record(recorder.record(directory.name, now, run.status))
        with suppress(OSError):  # the terminal is gone, or `head` has seen enough: the run itself goes on
            view.show(happening)

    directory = run_directory.RunDirectory.make(
        run_directory.HOME, job, now, lambda text: watch(Note("warning", text))
    )
    run = _run(prepared, directory, watch)
    directory.record(recorder.record(directory.name, now, run.status))
    with _shown(view):
        _announce(prepared, run, watch)
        _obey_signals(run, watch)
        status = await run.run(prepared.rehearsals)
    prepared.ports.release()
    shutil.rmtree(run.kubelet.machine.scratch, ignore_errors=True)
    record = recorder.record(directory.name, now, status, ended=datetime.now(UTC), interrupts=run.interrupts)
    directory.record(record)
    watch(Over(record.phase, record.exit_code or 0, record.message, str(directory.path)))
    with suppress(OSError):
        _conclude(prepared, record, recorder, directory)
    return record.exit_code or 0


@contextmanager
def _shown(view: screen.Screen) -> Iterator[None]:
    """The screen for as long as the run; that nobody looks at its end is no reason to fail."""
    view.__enter__()
    try:
        yield
    finally:
        with suppress(OSError):
            view.__exit__()


def _run(prepared: prepare.Prepared, directory: run_directory.RunDirectory, watch: Watch) -> LocalRun:
    job = prepared.job
    directory.write("job.yaml", formats.dump(job, "jobfile").text())
    if job.code is not None:
        code.bring(job.code, directory.path / "code")
    run = LocalRun(job, prepared.site, prepare.machine(prepared, directory.path.resolve()), directory)
    run.watch, run.pattern = watch, prepared.pattern
    if prepared.settings.tensorboard:
        run.helpers["tensorboard"] = _tensorboard(prepared, watch)
    return run


def _tensorboard(prepared: prepare.Prepared, watch: Watch) -> Command:
    """On the directory that the tasks write to, whatever they call it."""
    if prepared.job.tensorboard is None:
        raise Usage("--tensorboard: the job does not say where its summaries are; add tensorboard: /out/logs")
    if find_spec("tensorboard") is None:
        raise Usage("--tensorboard: TensorBoard is not installed; pip install tensorboard")
    here = prepare.machine(prepared, Path.cwd())
    role = prepared.job.roles[0]
    container = tensorflow_container(role.template)
    mounts = here.volumes.mounts({"spec": role.template["spec"]}, container, Path.cwd())
    logs = rewrite(prepared.job.tensorboard.log_dir, {target: source for source, target, _ in mounts})
    port = prepared.ports.one()
    watch(Note("info", f"TensorBoard: http://127.0.0.1:{port}/"))
    argv = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        logs,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    return Command(argv=argv, env=prepare.base_env(), cwd=str(Path.cwd()))


def _announce(prepared: prepare.Prepared, run: LocalRun, watch: Watch) -> None:
    job = prepared.job
    roles = ", ".join(f"{role.replicas} {role.name}" for role in job.roles if role.replicas)
    watch(Note("info", f"{job.name}: {roles}; logs in {run.directory.path}/logs"))
    watch(Note("info", "images are not used here: every task is a process of this machine"))
    missing = shortfalls(job)
    if missing:
        watch(Note("warning", f"not honoured here: {', '.join(missing)}"))
    for name, directory in stand_ins(job, set(prepared.mounts)):
        watch(
            Note(
                "info",
                f"volume {name} is {run_directory.HOME}/volumes/{directory}; --mount {name}=DIR uses another",
            )
        )
    for task in prepared.settings.attach:
        watch(Note("info", f"{task} is yours, environment and all: sh {run.directory.path}/attach-{task}.sh"))


def _obey_signals(run: LocalRun, watch: Watch) -> None:
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        text = "stopping at once" if run.interrupts else "stopping; once more to stop at once"
        watch(Note("warning", text))
        run.interrupt()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupt)


def _conclude(
    prepared: prepare.Prepared,
    record: run_directory.RunRecord,
    recorder: Recorder,
    directory: run_directory.RunDirectory,
) -> None:
    if prepared.settings.output == "json":
        return
    click.echo()
    for line in summary(record, recorder.progress):
        click.echo(line)
    click.echo()
    for name, path in recorder.outputs(prepared.mounts):
        click.echo(f"{name + ':':<9}{path}")
    click.echo(f"logs:    {directory.path}/logs")
    target, is_proved = prepared.settings.target, record.phase == "Succeeded"
    if is_proved and not prepared.settings.quiet and target.endswith((".yaml", ".yml", ".json")):
        click.echo(f"on a cluster: tfyard render {quote(target)} | kubectl apply -f -")
    if record.expires is not None and record.ended is not None and record.expires <= record.ended:
        run_directory.sweep(record.ended)
