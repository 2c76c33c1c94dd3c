"""From `tfyard run`'s options to a run: the job, the machine that stands in for a cluster, and its end."""

import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from msgspec import Struct
from msgspec.structs import replace

from tfyard import formats, planner
from tfyard.backends.local import run_directory
from tfyard.cli import files
from tfyard.errors import Usage
from tfyard.formats import durations
from tfyard.formats.declarations.reading import Notes, did_you_mean
from tfyard.formats.metadata import DNS_LABEL, RULE, as_name
from tfyard.formats.tfjob.fields import MAX_REPLICAS, canonical
from tfyard.local import code, gpus
from tfyard.local.ports import Ports
from tfyard.local.run import Rehearsal
from tfyard.model import ROLES, Create, Job, Manifest, Observed, Role, Task
from tfyard.model.backoff import Backoff
from tfyard.model.names import DEFAULT_IMAGE
from tfyard.node import cgroups
from tfyard.node.containers import Objects, collect
from tfyard.node.node import Kubelet, Machine, has_memory_limit
from tfyard.node.processes import Command
from tfyard.node.volumes import Volumes

BACKOFF = Backoff(first=1.0, longest=60.0)
"""Of tasks that fail again and again: whoever watches a terminal waits a tenth of what a cluster waits."""
ROLE_OPTIONS = ("chief", "worker", "ps", "evaluator")


class Settings(Struct, frozen=True, kw_only=True):
    """The options of `tfyard run`, as given."""

    target: str
    args: tuple[str, ...] = ()
    chief: int | None = None
    worker: int | None = None
    ps: int | None = None
    evaluator: int | None = None
    sets: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    mount: tuple[str, ...] = ()
    save: str | None = None
    name: str | None = None
    dry_run: bool = False
    gpus: bool = False
    tensorboard: bool = False
    kill: tuple[str, ...] = ()
    attach: tuple[str, ...] = ()
    metric: str | None = None
    quiet: bool = False
    output: str = "text"


class Prepared(Struct, kw_only=True):
    """All that is known before anything starts."""

    settings: Settings
    job: Job
    file: Path
    objects: Objects
    env: dict[str, str]
    mounts: dict[str, Path]
    rehearsals: list[Rehearsal]
    pattern: re.Pattern[str] | None
    ports: Ports
    site: planner.Site


def prepare(settings: Settings) -> Prepared:
    """Everything that can be wrong with the request is found here, before a process starts."""
    if settings.name is not None and not DNS_LABEL.fullmatch(settings.name):
        raise Usage(f"--name {settings.name}: {RULE}")  # the run's directory is called after it
    job, others, file = _load(settings)
    job = _adjusted(job, settings)
    if not job.size:
        raise Usage(f"{job.name} has no task: nothing to run")
    ports = Ports()
    prepared = Prepared(
        settings=settings,
        job=job,
        file=file,
        objects=collect(others),
        env=dict(_pair(text, "--env") for text in settings.env),
        mounts={name: _directory(path) for name, path in (_pair(m, "--mount") for m in settings.mount)},
        rehearsals=[_rehearsal(text, job) for text in settings.kill],
        pattern=_pattern(settings.metric),
        ports=ports,
        site=planner.Site(services="none", ports=ports.take(job.tasks()), backoff=BACKOFF),
    )
    for task in settings.attach:
        _check_task(task, job, "--attach")
    _check_mounts(prepared)
    _commands(prepared)
    return prepared


# The job.


def _load(settings: Settings) -> tuple[Job, list[Manifest], Path]:
    _check_save(settings)
    if settings.target.endswith(".py"):
        return _from_script(settings)
    documents = files.read_documents(settings.target)
    jobs = [document for document in documents if formats.is_job(document.data)]
    if len(jobs) != 1:
        text = f"has {len(jobs)} jobs" if jobs else "has no TFJob and no tfyard job file"
        raise Usage(f"{files.display_name(settings.target)} {text}; give a file with one")
    if settings.args:
        raise Usage("arguments after `--` are for a script; a job file has its own in `run`")
    others = [document.data for document in documents if document not in jobs]
    file = Path.cwd() / "-" if settings.target == "-" else Path(settings.target).resolve()
    return files.load(jobs[0]), [data for data in others if isinstance(data, dict)], file


def _check_save(settings: Settings) -> None:
    if settings.save is None:
        return
    if settings.sets:
        raise Usage("--save: give the roles by --worker, --ps and so on instead of --set")
    if not settings.target.endswith(".py"):
        raise Usage(f"--save is for scripts; `tfyard convert {settings.target}` writes a job anew")


def _from_script(settings: Settings) -> tuple[Job, list[Manifest], Path]:
    script = Path(settings.target)
    if not script.is_file():
        raise Usage(f"{settings.target}: there is no such file")
    counts = {role: getattr(settings, role) for role in ROLE_OPTIONS if getattr(settings, role) is not None}
    env = dict(_pair(text, "--env") for text in settings.env)
    words = {
        "name": settings.name or as_name(script.stem, "training"),
        "image": DEFAULT_IMAGE,
        "code": os.path.relpath(script.parent.resolve(), Path(settings.save or "x").resolve().parent),
        "run": ["python", script.name, *settings.args],
        **({"env": env} if env else {}),
        **(counts or {"worker": 1}),
    }
    if settings.save is not None and settings.dry_run:
        click.echo(f"--save: a dry run does not write {settings.save}", err=True)
    elif settings.save is not None:
        if Path(settings.save).exists():
            raise Usage(f"--save: {settings.save} exists; choose another name")
        from tfyard.cli import editor
        from tfyard.formats.writing import SCHEMA_LINE

        files.write_text(settings.save, SCHEMA_LINE + formats.to_yaml(words))
        editor.write_schema(settings.save)
    return formats.load(words), [], Path(settings.save or "x").resolve()


def _adjusted(job: Job, settings: Settings) -> Job:
    """The options have the last word; what makes no sense on one machine (a queue's suspension) is set aside."""
    counts = dict(_pair(text, "--set") for text in settings.sets)
    counts |= {role: str(n) for role in ROLE_OPTIONS if (n := getattr(settings, role)) is not None}
    roles = {role.name: role for role in job.roles}
    for given, text in counts.items():
        name = _counted_role(given, text)
        roles[name] = replace(roles.get(name) or _like(job, name), replicas=int(text))
    policy = replace(job.run_policy, suspend=False, managed_by=None)
    ordered = tuple(roles[name] for name in ROLES if name in roles)
    return replace(job, name=settings.name or job.name, roles=ordered, run_policy=policy)


def _counted_role(given: str, text: str) -> str:
    name = canonical(given)
    if name is None:
        hint = did_you_mean(given, [role.lower() for role in ROLES])
        raise Usage(f"--set {given}={text}: there is no role {given!r}; {hint}")
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) > MAX_REPLICAS:
        raise Usage(f"--set {given}={text}: must be a number from 0 to {MAX_REPLICAS}, as in {given}=4")
    return name


def _like(job: Job, name: str) -> Role:
    """A role that the file does not have runs what the others run."""
    return replace(job.roles[0], name=name)


# What options say.


def _pair(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise Usage(f"{option} {text}: must be NAME=VALUE")
    return name, value


def _directory(path: str) -> Path:
    found = Path(path).expanduser().resolve()
    if not found.is_dir():
        raise Usage(f"--mount: {path} is no directory")
    return found


def _rehearsal(text: str, job: Job) -> Rehearsal:
    task, _, when = text.partition("@")
    _check_task(task, job, "--kill")
    seconds = durations.read(when, (), Notes())
    if seconds is None:
        raise Usage(f"--kill {text}: must be TASK@TIME, as in {task}@30s")
    return Rehearsal(task, float(seconds))


def _check_task(name: str, job: Job, option: str) -> None:
    known = [task.name for task in job.tasks()]
    if name not in known:
        raise Usage(f"{option} {name}: there is no such task; {did_you_mean(name, known)}")


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise Usage(f"--metric {text}: {error}") from None
    if not pattern.groupindex:
        raise Usage(f"--metric {text}: name what to read, as in (?P<step>\\d+) and (?P<loss>[\\d.]+)")
    return pattern


def _check_mounts(prepared: Prepared) -> None:
    known = {v["name"] for role in prepared.job.roles for v in role.template["spec"].get("volumes") or []}
    for name in prepared.mounts:
        if name not in known:
            raise Usage(f"--mount {name}: the job has no such volume; {did_you_mean(name, known)}")


# The machine.


def machine(prepared: Prepared, directory: Path) -> Machine:
    job, settings = prepared.job, prepared.settings
    devices = gpus.share(job, gpus.visible()) if settings.gpus else {}
    folder = code.place(job.code, prepared.file.parent, directory / "code") if job.code else None

    def extra_env(task: Task) -> dict[str, str]:
        return {**({gpus.VARIABLE: devices[task]} if task in devices else {}), **prepared.env}

    return Machine(
        directory=directory,
        volumes=Volumes(Path.cwd() / run_directory.HOME / "volumes", prepared.mounts, prepared.objects),
        objects=prepared.objects,
        base_env=base_env(),
        extra_env=extra_env,
        code=(str(folder), job.code.at, False) if job.code else None,
        make_group=cgroups.find() if any(has_memory_limit(role.template) for role in job.roles) else None,
        attached=frozenset(settings.attach),
    )


def base_env() -> dict[str, str]:
    """Ours, as a shell would pass it on; `python` is the interpreter that runs tfyard, and does not hold
    lines back, since nobody wants to wait for a buffer to fill."""
    own = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own.get('PATH', os.defpath)}"
    return {"PYTHONUNBUFFERED": "1", **own, "PATH": path}


def _commands(prepared: Prepared) -> dict[Task, Command]:
    """Every task's process as it would be, made by the very code that starts it."""
    kubelet = Kubelet(machine(prepared, Path.cwd() / run_directory.HOME / "runs" / "RUN"), lambda _told: None)
    decision = planner.decide(prepared.job, Observed(), prepared.site, datetime.now(UTC))
    pods = [a.manifest for a in decision.actions if isinstance(a, Create) and a.kind == "Pod"]
    for pod in pods:
        kubelet.machine.volumes.check(pod)
    return {
        task: [
            _command(kubelet, pod, task, container)
            for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"])
        ][-1]
        for task, pod in zip(prepared.job.tasks(), pods, strict=True)
    }


def _command(kubelet: Kubelet, pod: Manifest, task: Task, container: Manifest) -> Command:
    command, asked = kubelet.command(pod, task, container, "0"), container.get("workingDir")
    if command.cwd == asked and not Path(asked).is_dir():  # else it is in a volume, which is made later
        text = f"{task.name}: the working directory {asked} is in the image, and images are not used here"
        raise Usage(f"{text}; say where your code is (job file: code, see `tfyard convert`), or remove it")
    return command


def show_plan(prepared: Prepared) -> None:
    """What would be started: directory, environment of its own, command; copied into a shell, it runs."""
    from shlex import join, quote

    inherited = base_env()
    for task, command in _commands(prepared).items():
        click.echo(f"{task.name}:")
        click.echo(f"  cd {quote(command.cwd)}")
        for name, value in command.env.items():
            if inherited.get(name) != value:
                click.echo(f"  {name}={quote(value)}")
        click.echo(f"  {join(command.argv)}")
