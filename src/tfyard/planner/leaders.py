"""The leaders of a job: the tasks whose success is the job's success."""

from tfyard.model import CHIEF, MASTER, WORKER, Job, Role, Task

LEADING_ROLES = (CHIEF, MASTER, WORKER)
"""Roles that lead a job, by precedence; a job without any of them is led by its first role."""


def leading_role(job: Job) -> Role | None:
    """The role that the format names, else the chief (by either name), else the workers, else the first."""
    present = {role.name: role for role in job.roles if role.replicas > 0}
    if job.chief is not None:
        return present.get(job.chief.role)
    for name in LEADING_ROLES:
        if name in present:
            return present[name]
    return next(iter(present.values()), None)


def leaders(job: Job) -> set[int]:
    """The indexes of the leading role that must all finish for the job to succeed."""
    role = leading_role(job)
    if role is None:
        return set()
    if job.chief is not None:
        return {job.chief.index}
    if role.name == WORKER and job.success != "AllWorkers":
        return {0}
    return set(range(role.replicas))


def deciding_task(job: Job) -> Task | None:
    """The one task that speaks for the job: the first of those that lead it."""
    role, indexes = leading_role(job), leaders(job)
    return Task(role.name, min(indexes)) if role and indexes else None


def masters(job: Job, role: Role) -> range:
    """Indexes of a role's tasks that carry upstream's label `job-role: master`, by which tools find the logs to
    show: the task that the format names, else every chief, else worker 0."""
    if job.chief is not None:
        index = job.chief.index
        return range(index, index + 1) if role.name == job.chief.role else range(0)
    if any(other.name in (CHIEF, MASTER) and other.replicas > 0 for other in job.roles):
        return range(role.replicas if role.name in (CHIEF, MASTER) else 0)
    return range(1 if role.name == WORKER else 0)
