"""When a job runs and when it has succeeded: the word of its leaders."""

from tfyard.model import Job

from .census import Census
from .leaders import leaders, leading_role


def has_succeeded(job: Job, census: Census) -> bool:
    role = leading_role(job)
    return role is not None and leaders(job) <= census.roles[role.name].finished


def is_running(job: Job, census: Census) -> bool:
    role = leading_role(job)
    return role is not None and bool(census.roles[role.name].running)
