"""Reads the job and the options, and checks everything before a run starts. Nothing here prints or writes."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tfyard import files, formats, planner
from tfyard.errors import Invalid, TfyardError, Usage
from tfyard.formats.pods import templates
from tfyard.local import commands, interpreter, script, settings, shortfalls
from tfyard.local.ports import Ports
from tfyard.local.prepared import Prepared
from tfyard.local.settings import Settings
from tfyard.model import ROLES, Job, Manifest, Problem, Role, tensorflow_container
from tfyard.model.backoff import Backoff
from tfyard.model.expansion import escape
from tfyard.node.containers import collect

if TYPE_CHECKING:
    from tfyard.local.cluster_config import ClusterConfig

BACKOFF = Backoff(first=1.0, longest=60.0)
"""Of tasks that fail again and again: a person at a terminal waits a tenth of what a cluster waits."""


class _Loaded(Struct, frozen=True, kw_only=True):
    job: Job
    file: Path
    others: list[Manifest] = []
    """The other objects of the file."""
    changes: tuple[str, ...] | None = None
    """None: it was read from a job, not from workloads."""
    warnings: tuple[Problem, ...] = ()
    text: formats.Document | Sequence[str] = ()
    config: "ClusterConfig | None" = None


def prepare(asked: Settings) -> Prepared:
    """Invalid if something is wrong with the file, Usage if something is wrong with the options; both before a
    process starts."""
    settings.check(asked)
    loaded = _from_script(asked) if asked.is_script else _from_file(asked)
    job = _with_command(_adjusted(loaded.job, asked), asked)
    if not job.size:
        raise Usage(f"{job.name} has no tasks: nothing to run")
    for name in asked.attach:
        settings.task(name, job, "--attach")
    ports = Ports()
    prepared = Prepared(
        settings=asked,
        job=job,
        file=loaded.file,
        python=interpreter.find(asked.python, os.environ),
        objects=collect(loaded.others),
        mounts=dict(settings.mount(text, job) for text in asked.mount),
        rehearsals=[settings.rehearsal(text, job) for text in asked.kill],
        pattern=settings.pattern(asked.metric),
        ports=ports,
        site=planner.Site(services="none", ports=ports.take(job.tasks()), backoff=BACKOFF),
        ignored=tuple(shortfalls.ignored(loaded.job)),
        is_from_workloads=loaded.changes is not None,
        changes=loaded.changes or (),
        warnings=loaded.warnings,
        text=loaded.text,
    )
    try:
        prepared = loaded.config.completed(prepared) if loaded.config else prepared
        commands.check(prepared)
    except TfyardError:
        ports.release()
        raise
    return prepared


def _with_command(job: Job, asked: Settings) -> Job:
    """What follows `--` is the command of the tasks that have none. Their image would know one, and images are not
    used here."""
    if asked.is_script or not asked.args:
        return job
    roles = tuple(_with_role_command(role, asked.args, in_code=job.code is not None) for role in job.roles)
    if roles == job.roles:
        text = f"every task of {job.name} has a command of its own (job file: run, TFJob: command)"
        raise Usage(f"-- {shlex.join(asked.args)}: {text}; change it there")
    return replace(job, roles=roles)


def _with_role_command(role: Role, words: Sequence[str], *, in_code: bool) -> Role:
    """It works in the folder of the job's code, else in the caller's directory."""
    container = tensorflow_container(role.template)
    if container.get("command") or role.is_default_server:
        return role
    changed = {**container, "command": [escape(word) for word in words]}
    changed |= {} if in_code else {"workingDir": str(Path.cwd())}
    spec = role.template["spec"]
    containers = [changed if one is container else one for one in spec["containers"]]
    return replace(role, template={**role.template, "spec": {**spec, "containers": containers}})


def _from_script(asked: Settings) -> _Loaded:
    try:
        job = formats.load(script.words(asked))
    except Invalid as error:
        problem = error.problems[0]  # each word is an option of that name
        raise Usage(f"--{problem.path[0]}: {problem.message}; {problem.fix}") from None
    return _Loaded(job=job, file=script.job_file(asked))


def _from_file(asked: Settings) -> _Loaded:
    documents = files.read_documents(asked.target)
    if len(documents) == 1 and formats.is_config(documents[0].data):
        from tfyard.local import cluster_config  # slow to import, and most files are jobs

        config = cluster_config.read(documents[0], asked)
        file = Path(asked.target).resolve()
        return _Loaded(job=config.job, file=file, text=documents[0], config=config)
    if asked.notebook:
        raise Usage(
            "--notebook is for a config with resources; `tfyard notebook render` writes one for a job"
        )
    jobs = [document for document in documents if formats.is_job(document.data)]
    file = Path.cwd() / "-" if asked.target == "-" else Path(asked.target).resolve()
    others = [d.data for d in documents if d not in jobs and isinstance(d.data, dict)]
    if files.has_only_workloads(documents):
        return _from_workloads(documents, file, others)
    if len(jobs) != 1:
        text = f"has {len(jobs)} jobs" if jobs else "has no TFJob, no tfyard job file and no workload"
        raise Usage(f"{files.display_name(asked.target)} {text}; give a file with one")
    job, warnings = files.load(jobs[0], asked.target, uses_images=False)
    warnings = templates.without_restarts(warnings)
    return _Loaded(job=job, file=file, others=others, warnings=warnings, text=jobs[0])


def _from_workloads(documents: list[formats.Document], file: Path, others: list[Manifest]) -> _Loaded:
    found = files.load_workloads(documents, documents[0].name)
    warnings, said = tuple(problem for _, problem in found.problems), tuple(found.said)
    return _Loaded(
        job=found.one, file=file, others=others, changes=said, warnings=warnings, text=documents[0]
    )


def _adjusted(job: Job, asked: Settings) -> Job:
    """The options win; what makes no sense on one machine (a queue's suspension) is removed."""
    job = replace(job, tf1=asked.tf1 or job.tf1)
    counts = [*asked.sets, *(f"{role}={count}" for role, count in asked.roles.items())]
    roles = {role.name: role for role in job.roles}
    for name, count in map(settings.replicas, counts):
        like = roles.get(name) or replace(job.roles[0], name=name)  # a new role runs what the others run
        roles[name] = replace(like, replicas=count)
    policy = replace(job.run_policy, suspend=False, managed_by=None)
    ordered = tuple(roles[name] for name in dict.fromkeys((*ROLES, *roles)) if name in roles)
    return replace(job, name=asked.name or job.name, roles=ordered, run_policy=policy)
