"""When a job runs and when it has succeeded: its leaders decide."""

from .leaders import leaders, leading_role
from .situation import Situation


def has_succeeded(situation: Situation) -> bool:
    role = leading_role(situation.job)
    return role is not None and leaders(situation.job) <= situation.census.roles[role.name].finished


def is_running(situation: Situation, crashing: frozenset[str]) -> bool:
    """Whether a leader runs; `crashing`: uids of pods in a crash loop, which do not count."""
    role = leading_role(situation.job)
    return role is not None and any(
        pod.uid not in crashing for pod in situation.census.roles[role.name].running
    )
