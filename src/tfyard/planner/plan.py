"""Actions that follow from a decision. Success and failure are decided before."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from tfyard.model import Action, Create, Delete, Job, Observed, Pod
from tfyard.model.names import tensorboard_name

from . import backoff, children, gang, kueue, pods
from .situation import Situation
from .tf_config import Roster, roster

OVERDUE_AFTER = 30.0
"""Seconds past its deletion time after which a pod is deleted by force, if it certainly runs no more: otherwise
it would keep its name for ever, and its task could never get a new pod."""


def plan(situation: Situation, group: gang.GangReview, *, is_held: bool) -> Iterator[Action]:
    """Create missing objects (Services before the pods that use them), delete superfluous Services; `is_held`:
    missing pods wait."""
    job, observed, setup = situation.job, situation.observed, situation.setup
    listed = roster(job, setup)
    manifests = children.wanted(job, listed, situation.site, setup)
    yield from _superfluous_services(job, observed, manifests.keys())
    for key, manifest in manifests.items():
        if key not in observed.children:
            yield Create(manifest, adopts=situation.site.kubeflow and key[0] == "Service")
    yield from children.repair(manifests, observed.services)
    yield from gang.amend(situation)
    if not group.is_waiting and not is_held:
        missing = _missing_pods(situation, listed, joins=group.joins)
        yield from islice(missing, kueue.pods_allowed(observed, setup))


def delete_pods(gone: Iterable[Pod], now: datetime) -> Iterator[Delete]:
    """Delete pods; by force if the kubelet does not finish a deletion."""
    for pod in gone:
        if pod.deleting is None:
            yield Delete("Pod", pod.name, pod.uid)
        elif overdue_in(pod, now) <= 0:
            yield Delete("Pod", pod.name, pod.uid, force=True)


def overdue_in(pod: Pod, now: datetime) -> float:
    """Seconds until the deletion of a pod has taken so long that it is repeated by force."""
    if pod.deleting is None:
        return OVERDUE_AFTER
    return (pod.deleting - now).total_seconds() + OVERDUE_AFTER


def _missing_pods(situation: Situation, listed: Roster, *, joins: bool) -> Iterator[Create]:
    job, setup = situation.job, situation.setup
    hostnames = setup.services == "shared" and job.size > 1
    for role in situation.census:
        due = [index for index in role.absent if backoff.remaining(role, index, situation.now) <= 0]
        if due:
            groups = (gang.membership(job, role.role, setup, joins=joins), kueue.membership(job, setup))
            build = pods.builder(job, role.role, listed, situation.site, groups, hostnames=hostnames)
            yield from (Create(build(index, role.attempts.get(index, 0))) for index in due)


def _superfluous_services(job: Job, observed: Observed, wanted: Iterable[children.Key]) -> Iterator[Delete]:
    """Services of tasks that a scale-down removed."""
    services = {name for kind, name in observed.children if kind == "Service"}
    keep = {name for _, name in wanted} | {tensorboard_name(job.name)}
    yield from (Delete("Service", name) for name in sorted(services - keep))
