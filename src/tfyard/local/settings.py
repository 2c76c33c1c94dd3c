"""What a run is asked for, and how each option is read."""

import re
from pathlib import Path

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.formats import durations
from tfyard.formats.declarations.reading import Notes, did_you_mean
from tfyard.formats.metadata import DNS_LABEL, RULE
from tfyard.formats.tfjob.fields import MAX_REPLICAS, canonical
from tfyard.model import ROLES, Job


class Settings(Struct, frozen=True, kw_only=True):
    """The options as given: text that is read by `prepare`, so that every interface reports the same errors."""

    target: str = ""
    """A job file, a TFJob of any version, a config with resources, or a Python script."""
    module: str | None = None
    """A Python module, instead of a target: `python -m`."""
    args: tuple[str, ...] = ()
    """For a script or module; for a job, the command of the tasks that have none."""
    tf1: bool = False
    """The program is written for TensorFlow 1."""
    python: str | None = None
    """The interpreter of the tasks, if not that of the active environment."""
    chief: int | None = None
    worker: int | None = None
    ps: int | None = None
    evaluator: int | None = None
    sets: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    mount: tuple[str, ...] = ()
    save: str | None = None
    """The job file that will be written for a script; its `code` is relative to that file."""
    name: str | None = None
    gpus: bool = False
    """Say so if there is none. They are distributed in any case."""
    share_gpus: bool = False
    tensorboard: str | None = None
    """The directory of the summaries; empty: the one that the job names."""
    notebook: bool = False
    """Start the Jupyter of a config with resources."""
    restart: str | None = None
    retries: int | None = None
    deadline: str | None = None
    memory: str | None = None
    kill: tuple[str, ...] = ()
    attach: tuple[str, ...] = ()
    metric: str | None = None

    @property
    def is_script(self) -> bool:
        return self.module is not None or self.target.endswith(".py")

    @property
    def roles(self) -> dict[str, int]:
        """Role -> how many tasks, for the roles that have an option of their own."""
        given = {"chief": self.chief, "worker": self.worker, "ps": self.ps, "evaluator": self.evaluator}
        return {role: count for role, count in given.items() if count is not None}

    @property
    def policies(self) -> dict[str, str | int]:
        """Words of the job file that a script has as options."""
        names = ("restart", "retries", "deadline", "memory")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def variables(self) -> dict[str, str]:
        return dict(pair(text, "--env") for text in self.env)


class Rehearsal(Struct, frozen=True):
    """A task to be evicted after so many seconds, as a cluster would by preemption."""

    task: str
    after: float
    now: bool = False
    """By SIGKILL, without a grace period."""


def check(settings: Settings) -> None:
    """Usage if the options are wrong whatever the job is."""
    for text in settings.env:
        pair(text, "--env")
    if settings.name is not None and not DNS_LABEL.fullmatch(settings.name):
        raise Usage(f"--name {settings.name}: {RULE}")  # the run's directory is named after it
    if settings.save is not None and settings.sets:
        raise Usage("--save: give the roles by --worker, --ps and so on instead of --set")
    if settings.save is not None and not settings.is_script:
        raise Usage(f"--save is for scripts; `tfyard convert {settings.target}` rewrites a job")
    if settings.notebook and settings.is_script:
        raise Usage("--notebook is for a config with resources, not for a script")
    for name in () if settings.is_script else settings.policies:
        raise Usage(f"--{name} is for scripts; a job file has the word {name}")


def pair(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise Usage(f"{option} {text}: must be NAME=VALUE")
    return name, value


def replicas(text: str) -> tuple[str, int]:
    """`--set ROLE=N`."""
    given, count = pair(text, "--set")
    role = canonical(given)
    if role is None:
        hint = did_you_mean(given, [name.lower() for name in ROLES])
        raise Usage(f"--set {text}: unknown role {given!r}; {hint}")
    if not re.fullmatch("[0-9]{1,9}", count) or int(count) > MAX_REPLICAS:
        raise Usage(f"--set {text}: must be a number from 0 to {MAX_REPLICAS}, as in {given}=4")
    return role, int(count)


def mount(text: str, job: Job) -> tuple[str, Path]:
    """`--mount NAME=DIR`."""
    name, path = pair(text, "--mount")
    directory = Path(path).expanduser().resolve()
    if not directory.is_dir():
        raise Usage(f"--mount: {path} is not a directory")
    known = {volume["name"] for role in job.roles for volume in role.template["spec"].get("volumes") or []}
    if name not in known:
        raise Usage(f"--mount {name}: the job has no volume of this name; {did_you_mean(name, known)}")
    return name, directory


def rehearsal(text: str, job: Job) -> Rehearsal:
    """`--kill TASK@TIME` or `TASK@TIME:now`."""
    name, _, when = text.partition("@")
    task(name, job, "--kill")
    when, colon, how = when.partition(":")
    seconds = durations.read(when, (), Notes())
    if seconds is None or how != ("now" if colon else ""):
        raise Usage(f"--kill {text}: must be TASK@TIME or TASK@TIME:now, as in {name}@30s")
    return Rehearsal(name, float(seconds), now=bool(colon))


def task(name: str, job: Job, option: str) -> str:
    known = [task.name for task in job.tasks()]
    if name not in known:
        raise Usage(f"{option} {name}: task not found; {did_you_mean(name, known)}")
    return name


def pattern(text: str | None) -> re.Pattern[str] | None:
    """`--metric REGEX`."""
    if text is None:
        return None
    try:
        compiled = re.compile(text)
    except re.error as error:
        raise Usage(f"--metric {text}: {error}") from None
    if not compiled.groupindex:
        raise Usage(f"--metric {text}: name what to read, as in (?P<step>\\d+) and (?P<loss>[\\d.]+)")
    return compiled
