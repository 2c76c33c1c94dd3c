"""When a job runs and when it has succeeded: the word of its leaders."""

from tfyard.model import CHIEF, MASTER, WORKER, Job, Role

from .census import Census


def leading_role(job: Job) -> Role | None:
    """The role whose word counts: the chief's (by either name), else the workers', else whoever is there."""
    present = {role.name: role for role in job.roles if role.replicas > 0}
    if job.chief is not None:
        return present.get(job.chief.role)
    for name in (CHIEF, MASTER, WORKER):
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


def has_succeeded(job: Job, census: Census) -> bool:
    role = leading_role(job)
    return role is not None and leaders(job) <= census.roles[role.name].finished


def is_running(job: Job, census: Census) -> bool:
    role = leading_role(job)
    return role is not None and bool(census.roles[role.name].running)
