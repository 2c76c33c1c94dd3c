"""Reads the job and the options, and checks everything before a run starts. Nothing here prints or writes."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tfyard import formats, planner
from tfyard.errors import TfyardError, Usage
from tfyard.formats.pods import templates
from tfyard.job_input import files, script
from tfyard.job_input.load import Loaded, from_documents
from tfyard.job_input.options import adjusted
from tfyard.local import commands, settings, shortfalls
from tfyard.local.ports import PortPool
from tfyard.local.prepared import PreparedRun
from tfyard.local.settings import RunOptions
from tfyard.model import Job, Manifest, MLflow, Role, tensorflow_container
from tfyard.model.expansion import escape
from tfyard.node import interpreter
from tfyard.node.container import RESTART_IN_PLACE
from tfyard.node.pod_data import collect

if TYPE_CHECKING:
    from tfyard.local.cluster_config import ClusterConfig


def prepare(asked: RunOptions) -> PreparedRun:
    """Raises Invalid for a wrong file and Usage for wrong options, before a process starts."""
    settings.check(asked)
    loaded, config = _load(asked)
    job, guesses = _with_args_as_commands(_with_command(_adjusted(loaded.job, asked), asked))
    if not job.size:
        raise Usage(f"{job.name} has no tasks: nothing to run")
    for name in asked.attach:
        settings.task(name, job, "--attach")
    ports = PortPool()
    prepared = PreparedRun(
        settings=asked,
        job=job,
        file=loaded.file,
        python=interpreter.find(asked.python, os.environ),
        objects=collect(loaded.others),
        mounts=dict(settings.mount(text, job) for text in asked.mount),
        rehearsals=[settings.rehearsal(text, job) for text in asked.kill],
        pattern=settings.pattern(asked.metric),
        ports=ports,
        site=planner.Site(
            services="none",
            ports=ports.take(job.tasks()),
            backoff=RESTART_IN_PLACE,
            eviction_lag=0.0,
            log_interval=0.0,
        ),
        ignored=tuple(shortfalls.ignored(loaded.job)),
        is_from_config=config is not None,
        changes=(*(loaded.changes or ()), *guesses),
        warnings=loaded.warnings,
        text=loaded.text,
    )
    try:
        prepared = config.completed(prepared) if config else prepared
        commands.check(prepared)
    except TfyardError:
        ports.release()
        raise
    return prepared


def _with_command(job: Job, asked: RunOptions) -> Job:
    """Words after `--` are the command of the tasks that have none: that of their image is not known here."""
    if asked.is_script or not asked.args:
        return job
    roles = tuple(_with_role_command(role, asked.args, in_code=job.code is not None) for role in job.roles)
    if roles == job.roles:
        text = f"every task of {job.name} has a command of its own (job file: run, TFJob: command)"
        raise Usage(f"-- {shlex.join(asked.args)}: {text}; change it there")
    return replace(job, roles=roles)


def _with_role_command(role: Role, words: Sequence[str], *, in_code: bool) -> Role:
    """The command works in the folder of the job's code, else in the caller's directory."""
    container = tensorflow_container(role.template)
    if container.get("command") or role.is_default_server:
        return role
    changed = {**container, "command": [escape(word) for word in words]}
    changed |= {} if in_code else {"workingDir": str(Path.cwd())}
    return _with_container(role, changed)


def _with_args_as_commands(job: Job) -> tuple[Job, list[str]]:
    """The job whose tasks run their `args`, if they have no command and the args begin with a program of this
    machine: images of TensorFlow and Python have no entrypoint. Also a sentence about each such role."""
    roles = tuple(map(_with_args_as_command, job.roles))
    changed = [new for old, new in zip(job.roles, roles, strict=True) if old is not new]
    commands_of = {role.name.lower(): tensorflow_container(role.template)["command"] for role in changed}
    changes = [
        f"the args of {role} are its command: {shlex.join(words)}" for role, words in commands_of.items()
    ]
    return replace(job, roles=roles), changes


def _with_args_as_command(role: Role) -> Role:
    container = tensorflow_container(role.template)
    args = [str(word) for word in container.get("args") or ()]
    if container.get("command") or not args or role.is_default_server or not interpreter.is_program(args[0]):
        return role
    return _with_container(role, {**container, "command": args, "args": []})


def _with_container(role: Role, changed: Manifest) -> Role:
    """The role with another container that trains."""
    container, spec = tensorflow_container(role.template), role.template["spec"]
    containers = [changed if each is container else each for each in spec["containers"]]
    return replace(role, template={**role.template, "spec": {**spec, "containers": containers}})


def _load(asked: RunOptions) -> "tuple[Loaded, ClusterConfig | None]":
    if asked.is_script:
        words = script.words(asked)
        words = script.with_output(words) if asked.makes_output else words
        return Loaded(job=script.load(words), file=asked.job_file), None
    documents = files.read_documents(asked.target)
    if len(documents) == 1 and formats.is_config(documents[0].data):
        from tfyard.local import cluster_config  # 25 ms with render/, and most files are jobs

        config = cluster_config.read(documents[0], asked)
        return Loaded(job=config.job, file=Path(asked.target).resolve(), text=documents[0]), config
    if asked.notebook:
        raise Usage(
            "--notebook is for a config with resources; `tfyard notebook render` writes one for a job"
        )
    loaded = from_documents(documents, asked.target, uses_images=False)
    if asked.beside:
        loaded = replace(loaded, file=Path(asked.beside), others=_objects_of(asked.beside))
    return replace(loaded, warnings=templates.without_restarts(loaded.warnings)), None


def _objects_of(file: str) -> list[Manifest]:
    """Objects of the file that are not jobs; none if the file is gone, or was standard input."""
    if not Path(file).is_file() or file.endswith(".py"):
        return []
    documents = files.read_documents(file)
    return [d.data for d in documents if not formats.is_job(d.data) and isinstance(d.data, dict)]


def _with_values(job: Job, asked: RunOptions) -> Job:
    from tfyard.formats.sweepfile.filling import as_trial, filled  # 6 ms, which only a trial needs

    return filled(job, asked.values) if asked.trial is None else as_trial(job, asked.trial)


def _adjusted(job: Job, asked: RunOptions) -> Job:
    """Job with the options, without what makes no sense on one machine (a queue's suspension)."""
    job = adjusted(job, asked)
    if asked.trial is not None or asked.values:
        job = _with_values(job, asked)
    reported = MLflow(uri=job.mlflow.uri) if job.mlflow else None  # not in the run of a job on a cluster
    return replace(job, run_policy=replace(job.run_policy, suspend=False, managed_by=None), mlflow=reported)
