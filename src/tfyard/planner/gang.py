"""Gang scheduling: the pods of a job start together or not at all, by whatever the cluster has for it.

Each of the three has a PodGroup of its own, and pods say in three ways that they belong to it. What none of them
does is tell us that a group can no longer be filled; that is worked out here.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct

from tfyard.model import (
    Amend,
    Delete,
    Event,
    GangScheduler,
    Group,
    Job,
    Manifest,
    Observed,
    Obstacle,
    Role,
    SchedulingPolicy,
)
from tfyard.model.names import PLUGINS_GROUP, POD_GROUP, VOLCANO_GROUP, VOLCANO_TASK

from . import reasons, resources
from .census import Census
from .site import Gang, Site

API_VERSIONS: dict[GangScheduler, str] = {
    "core": "scheduling.k8s.io/v1alpha2",
    "volcano": "scheduling.volcano.sh/v1beta1",
    "scheduler-plugins": "scheduling.x-k8s.io/v1alpha1",
}
SCHEDULERS: dict[GangScheduler, str] = {
    "core": "",
    "volcano": "volcano",
    "scheduler-plugins": "scheduler-plugins-scheduler",
}
"""The names under which they are installed."""
CLUSTERS_OWN = "default-scheduler"
PATIENCE = 30.0
"""Seconds until a wait is worth telling: most last for one, and would be a write each."""

_NOT_COPIED = "kubectl.kubernetes.io/last-applied-configuration"


class Membership(Struct, frozen=True):
    """What a pod carries to be counted."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: Manifest = {}


# --- the group


def group_spec(job: Job, gang: Gang, lost: int) -> Manifest:
    """As upstream asks for it. The core API knows numbers only: no queue, no resources, no time."""
    policy = job.run_policy.scheduling or SchedulingPolicy()
    members = min_member(job, lost)
    if gang.by == "core":
        return {"schedulingPolicy": {"gang": {"minCount": members}}}
    asked: Manifest = {"minResources": policy.min_resources or resources.of_first(job, members)}
    if gang.by == "volcano":
        asked |= {"queue": policy.queue, "priorityClassName": policy.priority_class}
    else:
        asked |= {"scheduleTimeoutSeconds": policy.timeout}
    return {"minMember": members, **{name: value for name, value in asked.items() if value}}


def min_member(job: Job, lost: int) -> int:
    """Volcano counts who has finished, but only as long as there is a pod to count."""
    policy = job.run_policy.scheduling
    return max(1, min((policy.min_available if policy else None) or job.size, job.size - lost))


def annotations(job: Job, gang: Gang) -> dict[str, str]:
    """The job's own, as upstream: Volcano reads some of its settings there."""
    if gang.by == "core":
        return {}
    return {name: text for name, text in job.annotations.items() if name != _NOT_COPIED}


def amend(job: Job, observed: Observed, site: Site) -> Iterator[Amend]:
    """Follow a job that was scaled. What the job does not ask for is left as it is; a queue is for good, and a
    core group as a whole cannot change."""
    gang, group = site.gang, observed.group
    if gang is None or group is None or group.deleting or gang.by == "core":
        return
    spec = {name: value for name, value in group_spec(job, gang, site.lost).items() if name != "queue"}
    differs = {name: value for name, value in spec.items() if group.spec.get(name) != value}
    if differs:
        patch = {name: _merge(group.spec.get(name), value) for name, value in differs.items()}
        yield Amend(POD_GROUP, job.name, {"spec": patch})


def _merge(old: Any, new: Any) -> Any:
    """A merge patch keeps what it does not name: what should go is named with null."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**dict.fromkeys(old), **new}
    return new


def dissolve(job: Job, observed: Observed) -> Iterator[Delete]:
    """With the job's end the claim on the cluster ends, whatever becomes of its pods."""
    is_leaving = observed.group is not None and observed.group.deleting
    if (POD_GROUP, job.name) in observed.children and not is_leaving:
        yield Delete(POD_GROUP, job.name)


# --- its members


def membership(job: Job, role: Role, site: Site) -> Membership:
    gang = site.gang
    if gang is None:
        return Membership()
    named = (role.template.get("spec") or {}).get("schedulerName")
    spec = {"schedulerName": gang.scheduler} if gang.scheduler and not named else {}
    if not gang.joins:
        return Membership(spec=spec)
    if gang.by == "core":
        return Membership(spec={"schedulingGroup": {"podGroupName": job.name}})
    if gang.by == "volcano":
        notes = {VOLCANO_GROUP: job.name, VOLCANO_TASK: role.name.lower()}
        return Membership(annotations=notes, spec=spec)
    return Membership(labels={PLUGINS_GROUP: job.name}, spec=spec)


def can_fill(job: Job, census: Census, observed: Observed, site: Site) -> bool:
    """Whether enough are members, or can still be. Volcano counts who has finished; the others do not, and a pod
    that takes another's place would wait for them for ever. Such a pod goes alone: the gang has long begun."""
    if site.gang is None or site.gang.by == "volcano":
        return True
    needed = (_core_members(observed.group) if site.gang.by == "core" else 0) or min_member(job, site.lost)
    unfinished = sum(role.role.replicas - len(role.finished) for role in census)
    outside = sum(not pod.member for role in census for pod in (*role.running, *role.pending))
    return unfinished - outside >= needed


def disband(job: Job, census: Census, observed: Observed, site: Site) -> None:
    """Who waits in a group that can no longer be filled is made anew alone: another has finished meanwhile, or
    the operator has another scheduler now, and whoever is missing will not join."""
    began = observed.status.cluster
    is_left = began is not None and began.gang is not None and site.gang is None
    if not is_left and can_fill(job, census, observed, site):
        return
    for role in census:
        stuck = [pod for pod in role.pending if pod.waits]
        for pod in stuck:
            role.give_up(pod, counts=False)
        role.pending = [pod for pod in role.pending if not pod.waits]


def _core_members(group: Group | None) -> int:
    """A core group stays as it was made, however the job is scaled."""
    policy = (group.spec if group else {}).get("schedulingPolicy") or {}
    return int((policy.get("gang") or {}).get("minCount") or 0)


def wait(job: Job, observed: Observed, census: Census, site: Site) -> Obstacle | None:
    """Why pods are not made yet. Never while some are there: then the gang has begun, and each one counts. (An old
    Volcano may refuse such a pod for a while; a refusal is told and tried again like any other.)"""
    group, gang = observed.group, site.gang
    if gang is None or any(role.running or role.pending for role in census):
        return None
    if group is not None and group.deleting:
        return Obstacle(reasons.GROUP_LEAVES, reasons.GROUP_LEAVES_MESSAGE.format(job=job))
    if gang.by != "volcano" or (group is not None and group.phase not in ("", "Pending")):
        return None
    if group is None or not group.phase:
        return Obstacle(reasons.GROUP_UNSEEN, reasons.GROUP_UNSEEN_MESSAGE.format(job=job))
    queue = group.spec.get("queue") or "default"
    return Obstacle(reasons.GROUP_WAITS, reasons.GROUP_WAITS_MESSAGE.format(job=job, queue=queue))


def patience_left(start: datetime | None, now: datetime) -> float:
    return PATIENCE if start is None else PATIENCE - (now - start).total_seconds()


def warnings(job: Job, site: Site) -> Iterator[Event]:
    """Whoever names another scheduler gets it; it may know nothing of our group. And a wish that nobody hears is
    not passed over in silence; on a single machine it comes true by itself."""
    if site.gang is None:
        if job.run_policy.scheduling is not None and job.size > 1 and not site.ports:
            yield Event("Warning", reasons.NO_GANG, reasons.NO_GANG_MESSAGE)
        return
    ours = ("", site.gang.scheduler or CLUSTERS_OWN)
    others = [
        r.name for r in job.roles if ((r.template.get("spec") or {}).get("schedulerName") or "") not in ours
    ]
    if others:
        text = f"{reasons.TEMPLATE_SCHEDULER_MESSAGE} ({', '.join(others)})"
        yield Event("Warning", reasons.TEMPLATE_SCHEDULER, text)
