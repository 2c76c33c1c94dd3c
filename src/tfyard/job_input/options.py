"""Options by which a command line names and changes a job, wherever it will run."""

import re

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.formats import mlflow
from tfyard.formats.metadata import DNS_LABEL, RULE
from tfyard.formats.tfjob.fields import MAX_REPLICAS, canonical
from tfyard.model import ROLES, Job, MLflow
from tfyard.model.spelling import did_you_mean


class JobOptions(Struct, frozen=True, kw_only=True):
    """Options as the user wrote them, parsed with the job: all interfaces report the same errors."""

    target: str = ""
    """A job file, a TFJob of any version, a config with resources, or a Python script."""
    module: str | None = None
    """A Python module, instead of a target: `python -m`."""
    args: tuple[str, ...] = ()
    """Arguments of a script or module."""
    tf1: bool = False
    """Whether the program is written for TensorFlow 1."""
    chief: int | None = None
    worker: int | None = None
    ps: int | None = None
    evaluator: int | None = None
    sets: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    name: str | None = None
    restart: str | None = None
    retries: int | None = None
    deadline: str | None = None
    memory: str | None = None
    mlflow: str = ""
    """Address of an MLflow server, without credentials; empty: the job's own."""

    @property
    def is_script(self) -> bool:
        return self.module is not None or self.target.endswith(".py")

    @property
    def roles(self) -> dict[str, int]:
        """Role -> number of tasks, for the roles that have an option of their own."""
        counts = {"chief": self.chief, "worker": self.worker, "ps": self.ps, "evaluator": self.evaluator}
        return {role: count for role, count in counts.items() if count is not None}

    @property
    def policies(self) -> dict[str, str | int]:
        """Words of the job file that are options for a script."""
        names = ("restart", "retries", "deadline", "memory")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def variables(self) -> dict[str, str]:
        return dict(pair(text, "--env") for text in self.env)


def check(options: JobOptions) -> None:
    """Raise Usage if the options are wrong for any job."""
    for text in options.env:
        pair(text, "--env")
    if options.name is not None and not DNS_LABEL.fullmatch(options.name):
        raise Usage(f"--name {options.name}: {RULE}")
    if options.mlflow and (refusal := mlflow.refusal(options.mlflow)):
        raise Usage(refusal)
    for name in () if options.is_script else options.policies:
        raise Usage(f"--{name} is for scripts; a job file has the word {name}")


def pair(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise Usage(f"{option} {text}: must be NAME=VALUE".lstrip())
    return name, value


def replicas(text: str, option: str = "--set") -> tuple[str, int]:
    """Role and count of `--set ROLE=N` or another option; empty: of an argument in Python."""
    (name, count), shown = pair(text, option), f"{option} {text}".lstrip()
    role = canonical(name)
    if role is None:
        hint = did_you_mean(name, [each.lower() for each in ROLES])
        hint = "--tf1 is an option of its own" if name == "tf1" else hint
        raise Usage(f"{shown}: unknown role {name!r}; {hint}")
    if not re.fullmatch("[0-9]{1,9}", count) or int(count) > MAX_REPLICAS:
        raise Usage(f"{shown}: must be a number from 0 to {MAX_REPLICAS}, as in {name}=4")
    return role, int(count)


def adjusted(job: Job, options: JobOptions) -> Job:
    """The job with the options applied; a new role runs the same program as the first one."""
    counts = [*options.sets, *(f"{role}={count}" for role, count in options.roles.items())]
    roles = {role.name: role for role in job.roles}
    for name, count in map(replicas, counts):
        like = roles.get(name) or replace(job.roles[0], name=name)
        roles[name] = replace(like, replicas=count)
    ordered = tuple(roles[name] for name in dict.fromkeys((*ROLES, *roles)) if name in roles)
    reported = MLflow(uri=options.mlflow) if options.mlflow else job.mlflow
    name, tf1 = options.name or job.name, options.tf1 or job.tf1
    return replace(job, name=name, roles=ordered, tf1=tf1, mlflow=reported)
