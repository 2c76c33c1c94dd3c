"""Options of a run, and how each is read."""

import re
from pathlib import Path

from msgspec import Struct, field

from tfyard.errors import Usage
from tfyard.formats import durations
from tfyard.job_input import options
from tfyard.job_input.options import JobOptions, pair
from tfyard.model import Job
from tfyard.model.spelling import did_you_mean
from tfyard.model.sweep import TrialOf, Values

SOURCE_VARIABLE = "TFYARD_SOURCE"


class RunOptions(JobOptions, frozen=True, kw_only=True):
    """The options as written. `args` of a job are the command of the tasks that have none."""

    beside: str = ""
    """The file that the target was made from: its folder has the code, and its other objects are used."""
    python: str | None = None
    """The interpreter of the tasks, if not that of the active environment."""
    mount: tuple[str, ...] = ()
    save: str | None = None
    """The job file that will be written for a script; its `code` is relative to that file."""
    gpus: bool = False
    """Warn if there are none. They are distributed in any case."""
    share_gpus: bool = False
    tensorboard: str | None = None
    """The directory of the summaries; empty: the one that the job names."""
    notebook: bool = False
    """Start the Jupyter of a config with resources."""
    kill: tuple[str, ...] = ()
    attach: tuple[str, ...] = ()
    """Tasks that the user starts."""
    metric: str | None = None
    sources: dict[str, str] = field(default_factory=dict)
    """Name -> text of programs that are in no file of the user, such as a notebook's cell. The run keeps them in
    its directory, in the folder that the variable TFYARD_SOURCE names."""
    makes_output: bool = False
    """A script gets a volume for its outputs, as on a cluster: the trials of a sweep would overwrite what others
    write to its folder, or go on from that."""
    trial: TrialOf | None = None
    """The run is a trial of a sweep: the job gets these values, and its own folder in the volumes."""
    values: Values = field(default_factory=dict)
    """Values of parameters for a run that is no trial, such as those of the best one."""

    @property
    def job_file(self) -> Path:
        """Path of a script's job file, also if it is not saved."""
        return Path(self.save or "job.yaml").resolve()


class Rehearsal(Struct, frozen=True):
    """A task to be evicted after so many seconds, as a cluster would by preemption."""

    task: str
    after: float
    now: bool = False
    """Evict it by SIGKILL, without a grace period."""


def check(settings: RunOptions) -> None:
    """Raises Usage if the options are wrong for any job."""
    if settings.save is not None and settings.sets:
        raise Usage("--save: give the roles by --worker, --ps and so on instead of --set")
    if settings.save is not None and not settings.is_script:
        raise Usage(f"--save is for scripts; `tfyard convert {settings.target}` rewrites a job")
    if settings.notebook and settings.is_script:
        raise Usage("--notebook is for a config with resources, not for a script")
    options.check(settings)


def mount(text: str, job: Job) -> tuple[str, Path]:
    """Reads `--mount NAME=DIR`."""
    name, path = pair(text, "--mount")
    directory = Path(path).expanduser().resolve()
    if not directory.is_dir():
        raise Usage(f"--mount: {path} is not a directory")
    known = {volume["name"] for role in job.roles for volume in role.template["spec"].get("volumes") or []}
    if name not in known:
        raise Usage(f"--mount {name}: the job has no volume of this name; {did_you_mean(name, known)}")
    return name, directory


def rehearsal(text: str, job: Job) -> Rehearsal:
    """Reads `--kill TASK@TIME` or `TASK@TIME:now`."""
    name, _, when = text.partition("@")
    task(name, job, "--kill")
    when, colon, how = when.partition(":")
    seconds = durations.parse(when)
    if seconds is None or how != ("now" if colon else ""):
        raise Usage(f"--kill {text}: must be TASK@TIME or TASK@TIME:now, as in {name}@30s")
    return Rehearsal(name, float(seconds), now=bool(colon))


def task(name: str, job: Job, option: str) -> str:
    names = [task.name for task in job.tasks()]
    if name not in names:
        raise Usage(f"{option} {name}: task not found; {did_you_mean(name, names)}")
    return name


def pattern(text: str | None) -> re.Pattern[str] | None:
    """Reads `--metric REGEX`."""
    if text is None:
        return None
    try:
        compiled = re.compile(text)
    except re.error as error:
        raise Usage(f"--metric {text}: {error}") from None
    if not compiled.groupindex:
        raise Usage(f"--metric {text}: name what to read, as in (?P<step>\\d+) and (?P<loss>[\\d.]+)")
    return compiled
