"""When a job runs and when it has succeeded: its leaders decide."""

from tfyard.model import CHIEF, MASTER, WORKER, Job, Role

from .situation import Situation


def leading_role(job: Job) -> Role | None:
    """The role that decides: the chief (by either name), else the workers, else the first one that has tasks."""
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


def has_succeeded(situation: Situation) -> bool:
    role = leading_role(situation.job)
    return role is not None and leaders(situation.job) <= situation.census.roles[role.name].finished


def is_running(situation: Situation) -> bool:
    role = leading_role(situation.job)
    return role is not None and bool(situation.census.roles[role.name].running)
