"""From what should be there to what must be done. Success and failure are decided before, not here."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from tfyard.model import Action, Create, Delete, Job, Observed, Pod
from tfyard.model.names import tensorboard_name

from . import children, gang, kueue, pods
from .situation import Situation
from .tf_config import Roster, roster

OVERDUE_AFTER = 30.0
"""Seconds past its deletion time after which the kubelet of a pod counts as dead: the pod would keep its name
for ever, and its task could never be replaced."""


def plan(situation: Situation, group: gang.Review) -> Iterator[Action]:
    """Create what is missing (Services before the pods that use them), delete Services that are too many."""
    job, observed, setup = situation.job, situation.observed, situation.setup
    listed = roster(job, setup)
    wanted = children.wanted(job, listed, situation.site, setup)
    yield from _superfluous_services(job, observed, wanted.keys())
    yield from (Create(manifest) for key, manifest in wanted.items() if key not in observed.children)
    yield from gang.amend(situation)
    if not group.is_waiting:
        missing = _missing_pods(situation, listed, joins=group.joins)
        yield from islice(missing, kueue.pods_allowed(observed, setup))


def delete_pods(gone: Iterable[Pod], now: datetime) -> Iterator[Delete]:
    """A pod whose kubelet does not finish its deletion is deleted by force."""
    for pod in gone:
        if pod.deleting is None:
            yield Delete("Pod", pod.name, pod.uid)
        elif overdue_in(pod, now) <= 0:
            yield Delete("Pod", pod.name, pod.uid, force=True)


def overdue_in(pod: Pod, now: datetime) -> float:
    """Seconds until a pod that is being deleted counts as abandoned by its kubelet."""
    if pod.deleting is None:
        return OVERDUE_AFTER
    return (pod.deleting - now).total_seconds() + OVERDUE_AFTER


def _missing_pods(situation: Situation, listed: Roster, *, joins: bool) -> Iterator[Create]:
    job, setup = situation.job, situation.setup
    hostnames = setup.services == "shared" and job.size > 1
    for role in situation.census:
        if role.absent:
            groups = (gang.membership(job, role.role, setup, joins=joins), kueue.membership(job, setup))
            build = pods.builder(job, role.role, listed, situation.site, groups, hostnames=hostnames)
            yield from (Create(build(index, role.attempts.get(index, 0))) for index in role.absent)


def _superfluous_services(job: Job, observed: Observed, wanted: Iterable[children.Key]) -> Iterator[Delete]:
    """Services of tasks that a scale-down removed."""
    services = {name for kind, name in observed.children if kind == "Service"}
    keep = {name for _, name in wanted} | {tensorboard_name(job.name)}
    yield from (Delete("Service", name) for name in sorted(services - keep))
