"""Rules about a whole job that no single field can break: how many, how long, how large."""

from msgspec import Struct

from tfyard.model import CHIEF, EVALUATOR, MASTER, PS, WORKER, Job, Task
from tfyard.model.names import MAX_LABEL, pod_name, tensorboard_name

from .declarations.reading import Notes, Path

MAX_ENV_STRING = 128 * 1024
"""Linux starts no program with a longer environment string (MAX_ARG_STRLEN), and TF_CONFIG is one."""
CLUSTER_DOMAIN_ROOM = len(".cluster.local")
ENVELOPE_ROOM = 256


class Where(Struct, frozen=True):
    """The field paths of a format, for problems that are about the job and not about one field."""

    name: Path
    roles: Path
    role: dict[str, Path]
    count: str
    """The field that says how many tasks a role has."""
    gang: Path

    def tasks(self, role: str) -> Path:
        return (*self.role[role], self.count) if role in self.role else self.roles


def check(job: Job, where: Where, notes: Notes) -> None:
    _check_chiefs(job, where, notes)
    _check_tasks(job, where, notes)
    if _check_names(job, where, notes):
        _check_cluster_size(job, where, notes)
    gang = job.run_policy.scheduling
    if gang is not None and (gang.min_available or 0) > job.size:
        text = f"a gang of {gang.min_available} never fits: the job has {job.size} tasks"
        notes.error(where.gang, text, f"at most {job.size}", gang.min_available)


def _check_chiefs(job: Job, where: Where, notes: Notes) -> None:
    chiefs = [role for role in job.roles if role.name in (CHIEF, MASTER)]
    if len(chiefs) > 1:
        text = "must not have more than 1 Chief or Master role"
        notes.error(where.roles, text, "keep one of the two")
    for role in chiefs:
        if role.replicas > 1:
            text = f"there is one {role.name}, not {role.replicas}"
            notes.error(where.tasks(role.name), text, "1", role.replicas)


def _check_tasks(job: Job, where: Where, notes: Notes) -> None:
    present = {role.name for role in job.roles if role.replicas > 0}
    if job.roles and not present:
        notes.warn(where.roles, "the job has no task at all: nothing will run", "give a role a replica")
    elif present == {PS}:
        text = "parameter servers alone never end: nothing trains"
        notes.warn(where.roles, text, "add a Worker or a Chief")
    evaluator = job.role(EVALUATOR)
    if evaluator is not None and evaluator.replicas > 1:
        text = "TensorFlow knows one evaluator; the others repeat its work"
        notes.warn(where.tasks(EVALUATOR), text, "1")


def _check_names(job: Job, where: Where, notes: Notes) -> bool:
    """A pod's name is a host name and a label value: the job's name, the role, the index, at most 63 letters."""
    names = [pod_name(job.name, Task(role.name, max(0, role.replicas - 1))) for role in job.roles]
    names += [tensorboard_name(job.name)] if job.tensorboard else []
    longest = max(names, key=len, default="")
    if len(longest) > MAX_LABEL:
        room = MAX_LABEL - (len(longest) - len(job.name))
        shown = longest if len(longest) <= 2 * MAX_LABEL else f"{longest[:MAX_LABEL]}…"
        text = f"is too long: {shown!r} would have {len(longest)} letters, and {MAX_LABEL} are allowed"
        notes.error(where.name, text, f"use at most {room} letters", job.name)
    return len(longest) <= MAX_LABEL


def _check_cluster_size(job: Job, where: Where, notes: Notes) -> None:
    """TF_CONFIG lists every task. Elastic jobs are exempt: there nobody lists the workers."""
    sizes = {role.name: role.replicas * _entry_size(job, role.name, role.replicas) for role in job.roles}
    if job.dynamic_workers:
        sizes.pop(WORKER, None)
    total = sum(sizes.values()) + ENVELOPE_ROOM
    if total <= MAX_ENV_STRING:
        return
    largest = max(sizes, key=lambda name: sizes[name])
    replicas = next(role.replicas for role in job.roles if role.name == largest)
    fits = max(0, replicas - (total - MAX_ENV_STRING) // _entry_size(job, largest, replicas) - 1)
    text = f"TF_CONFIG would have {total:,} bytes, and Linux allows {MAX_ENV_STRING:,}"
    notes.error(
        where.tasks(largest), text, f"at most {fits:,} {largest} tasks fit with these names", replicas
    )


def _entry_size(job: Job, role: str, replicas: int) -> int:
    host = f"{pod_name(job.name, Task(role, replicas))}.{job.name}.{job.namespace}.svc"
    return len(host) + CLUSTER_DOMAIN_ROOM + len(':65535","')
