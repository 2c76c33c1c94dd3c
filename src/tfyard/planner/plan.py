"""From what should be to what must be done. Nothing is judged here: success and failure are settled before."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from msgspec.structs import replace

from tfyard.model import Action, Create, Delete, Job, Observed, Pod
from tfyard.model.names import tensorboard_name

from . import children, gang, kueue, pods
from .census import Census
from .site import Site
from .tf_config import Roster, roster

OVERDUE_AFTER = 30.0
"""Seconds past its deletion time until a pod's kubelet is taken for dead: the pod would hold its name
for ever, and its task could never be replaced."""


def plan(job: Job, observed: Observed, census: Census, site: Site) -> Iterator[Action]:
    """Whatever is missing is made (names first, then who answers to them), whatever is too much goes."""
    listed = roster(job, site)
    wanted = children.wanted(job, listed, site)
    yield from _superfluous_services(job, observed, wanted.keys())
    yield from (Create(manifest) for key, manifest in wanted.items() if key not in observed.children)
    yield from gang.amend(job, observed, site)
    if gang.wait(job, observed, census, site) is None:
        if site.gang is not None and not gang.can_fill(job, census, observed, site):
            site = replace(site, gang=replace(site.gang, joins=False))
        yield from islice(_missing_pods(job, census, listed, site), kueue.room(observed, site))


def departures(gone: Iterable[Pod], now: datetime) -> Iterator[Delete]:
    """Delete what must go; what was asked to go and does not answer is removed by force."""
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


def _missing_pods(job: Job, census: Census, listed: Roster, site: Site) -> Iterator[Create]:
    hostnames = site.services == "shared" and job.size > 1
    for role in census:
        if role.absent:
            build = pods.builder(job, role.role, listed, site, hostnames=hostnames)
            yield from (Create(build(index, role.attempts.get(index, 0))) for index in role.absent)


def _superfluous_services(job: Job, observed: Observed, wanted: Iterable[children.Key]) -> Iterator[Delete]:
    """Services of tasks that a scale-down took away."""
    services = {name for kind, name in observed.children if kind == "Service"}
    keep = {name for _, name in wanted} | {tensorboard_name(job.name)}
    yield from (Delete("Service", name) for name in sorted(services - keep))
