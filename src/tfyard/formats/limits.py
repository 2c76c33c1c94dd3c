"""Rules about a job as a whole: number of tasks, length of names, size of TF_CONFIG."""

from msgspec import Struct

from tfyard.model import CHIEF, EVALUATOR, MASTER, PS, WORKER, Job, Task
from tfyard.model.names import MAX_LABEL, pod_name, tensorboard_name

from .declarations.reading import Notes, Path

MAX_ENV_STRING = 128 * 1024
"""Longest environment variable with which Linux starts a program (MAX_ARG_STRLEN); TF_CONFIG must fit."""
CLUSTER_DOMAIN_ROOM = len(".cluster.local")
CLUSTER_ROOM = MAX_ENV_STRING - 256
"""Bytes that all tasks together may have in TF_CONFIG."""
ELASTIC_ROLES = (WORKER, PS)
"""Roles whose tasks do not list the workers of an elastic job."""


class FieldPaths(Struct, frozen=True):
    """Field paths of a format, for problems of the job as a whole."""

    name: Path
    roles: Path
    role: dict[str, Path]
    count: str
    """Name of the field with the number of tasks of a role."""
    gang: Path
    together: Path = ("together",)

    def tasks(self, role: str) -> Path:
        return (*self.role[role], self.count) if role in self.role else self.roles


def check(job: Job, where: FieldPaths, notes: Notes) -> None:
    _check_chiefs(job, where, notes)
    _check_tasks(job, where, notes)
    _check_together(job, where, notes)
    if _check_names(job, where, notes):
        _check_cluster_size(job, where, notes)
    gang = job.run_policy.scheduling
    if gang is not None and (gang.min_available or 0) > job.size:
        text = f"must be at most {job.size}, the number of tasks: a larger gang never starts"
        notes.error(where.gang, text, f"use at most {job.size}", gang.min_available)


def _check_together(job: Job, where: FieldPaths, notes: Notes) -> None:
    if job.together and job.dynamic_workers:
        text = "must not be set with dynamic workers, which come and go without the others"
        notes.error(where.together, text, "remove one of the two")


def _check_chiefs(job: Job, where: FieldPaths, notes: Notes) -> None:
    chiefs = [role for role in job.roles if role.name in (CHIEF, MASTER)]
    if len(chiefs) > 1:
        text = "must not have more than 1 Chief or Master role"
        notes.error(where.roles, text, "keep one of the two")
    for role in chiefs:
        if role.replicas > 1:
            text = f"must be at most 1: a job has one {role.name}"
            notes.error(where.tasks(role.name), text, "set it to 1", role.replicas)


def _check_tasks(job: Job, where: FieldPaths, notes: Notes) -> None:
    present = {role.name for role in job.roles if role.replicas > 0}
    if job.roles and not present:
        notes.warn(where.roles, "the job has no tasks: nothing will run", "give a role at least 1 task")
    elif present == {PS}:
        text = "the job has only parameter servers: it trains nothing and never ends"
        notes.warn(where.roles, text, "add a Worker or a Chief")
    evaluator = job.role(EVALUATOR)
    if evaluator is not None and evaluator.replicas > 1:
        text = "TensorFlow uses one evaluator; further ones repeat its work"
        notes.warn(where.tasks(EVALUATOR), text, "set it to 1")


def _check_names(job: Job, where: FieldPaths, notes: Notes) -> bool:
    """A pod's name (job, role and index) is a host name and a label value: at most 63 characters."""
    names = [pod_name(job.name, Task(role.name, max(0, role.replicas - 1))) for role in job.roles]
    names += [tensorboard_name(job.name)] if job.tensorboard else []
    longest = max(names, key=len, default="")
    if len(longest) > MAX_LABEL:
        room = MAX_LABEL - (len(longest) - len(job.name))
        shown = longest if len(longest) <= 2 * MAX_LABEL else f"{longest[:MAX_LABEL]}…"
        size = f"{len(longest)} characters, at most {MAX_LABEL} are allowed"
        text = f"is too long: the name {shown!r} would have {size}"
        notes.error(where.name, text, f"use at most {room} characters", job.name)
    return len(longest) <= MAX_LABEL


def _check_cluster_size(job: Job, where: FieldPaths, notes: Notes) -> None:
    """TF_CONFIG lists every task; of an elastic job, only roles other than Worker and PS list the workers."""
    counts = {role.name: role.replicas for role in job.roles if role.replicas}
    entries = {role: entry_size(job.name, job.namespace, role, count) for role, count in counts.items()}
    if job.dynamic_workers and counts.keys() <= {*ELASTIC_ROLES}:
        entries.pop(WORKER, None)
    sizes = {role: counts[role] * entry for role, entry in entries.items()}
    excess = sum(sizes.values()) - CLUSTER_ROOM
    if excess <= 0:
        return
    largest = max(sizes, key=lambda role: sizes[role])
    fits = max(0, counts[largest] - excess // entries[largest] - 1)
    text = f"TF_CONFIG would have {excess + MAX_ENV_STRING:,} bytes; Linux allows at most {MAX_ENV_STRING:,}"
    fix = f"use at most {fits:,} {largest} tasks, or shorter names"
    notes.error(where.tasks(largest), text, fix, counts[largest])


def entry_size(name: str, namespace: str, role: str, replicas: int) -> int:
    """Bytes of TF_CONFIG for each task of a role of so many replicas."""
    host = f"{pod_name(name, Task(role, replicas))}.{name}.{namespace}.svc"
    return len(host) + CLUSTER_DOMAIN_ROOM + len(':65535","')
