"""Gang scheduling: the pods of a job start together or not at all, with the scheduler that the cluster has.

Each of the three schedulers has its own PodGroup and its own mark for pods that belong to one. None of them
reports that a group can no longer be filled, so `review` works that out.
"""

from collections import defaultdict
from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal
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
from tfyard.model.names import LAST_APPLIED, PLUGINS_GROUP, POD_GROUP, VOLCANO_GROUP, VOLCANO_TASK
from tfyard.model.quantity import amount

from . import reasons
from .census import GivenUp
from .job_setup import Setup
from .site import Gang
from .situation import Situation

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
"""Default schedulerName of each gang scheduler; empty: the cluster's default scheduler."""
DEFAULT_SCHEDULER = "default-scheduler"
PATIENCE = 30.0
"""Seconds until a wait is reported: most waits last one second, and a report costs a status update."""


Sums = dict[str, Decimal]


class Membership(Struct, frozen=True):
    """What marks a pod as a member of its group."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: Manifest = {}


# --- the group


def group_spec(job: Job, gang: Gang, members: int) -> Manifest:
    """The PodGroup's spec, as upstream writes it. The core API has only a number of members."""
    policy = job.run_policy.scheduling or SchedulingPolicy()
    if gang.by == "core":
        return {"schedulingPolicy": {"gang": {"minCount": members}}}
    asked: Manifest = {"minResources": policy.min_resources or _resources_of_first(job, members)}
    if gang.by == "volcano":
        asked |= {"queue": policy.queue, "priorityClassName": policy.priority_class}
    else:
        asked |= {"scheduleTimeoutSeconds": policy.timeout}
    return {"minMember": members, **{name: value for name, value in asked.items() if value}}


def min_member(job: Job, setup: Setup) -> int:
    """Members that the group waits for. Volcano counts finished tasks, but only as long as they have a pod."""
    policy, countable = job.run_policy.scheduling, job.size - setup.finished_without_pod
    return max(1, min((policy.min_available if policy else None) or job.size, countable))


def annotations(job: Job, gang: Gang) -> dict[str, str]:
    """The PodGroup's annotations, copied from the job as upstream does: Volcano reads some settings there."""
    if gang.by == "core":
        return {}
    return {name: text for name, text in job.annotations.items() if name != LAST_APPLIED}


def amend(situation: Situation) -> Iterator[Amend]:
    """Adapt the PodGroup to a job that was scaled. Fields that the job does not set stay as they are; a queue and
    a core group cannot be changed."""
    job, gang, group = situation.job, situation.setup.gang, situation.observed.group
    if gang is None or group is None or group.deleting or gang.by == "core":
        return
    target = group_spec(job, gang, min_member(job, situation.setup))
    spec = {name: value for name, value in target.items() if name != "queue"}
    differs = {name: value for name, value in spec.items() if group.spec.get(name) != value}
    if differs:
        patch = {name: _merge(group.spec.get(name), value) for name, value in differs.items()}
        yield Amend(POD_GROUP, job.name, {"spec": patch})


def _merge(old: Any, new: Any) -> Any:
    """The value of a merge patch, which keeps fields that it does not name: null removes one."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**dict.fromkeys(old), **new}
    return new


def delete_group(job: Job, observed: Observed) -> Iterator[Delete]:
    """Delete the PodGroup: a job that has ended or is suspended reserves nothing, even if its pods stay."""
    is_leaving = observed.group is not None and observed.group.deleting
    if (POD_GROUP, job.name) in observed.children and not is_leaving:
        yield Delete(POD_GROUP, job.name)


# --- what it needs: gang schedulers check the sum before they start any pod


def _resources_of_first(job: Job, members: int) -> dict[str, str]:
    """What the first members need, with roles in the order of the job: upstream sorts by PriorityClass, but never
    reads its priority. A value that is not a quantity counts as 0: the API server will reject the pods for it."""
    total: Sums = defaultdict(Decimal)
    left = members
    for role in job.roles:
        count = min(left, role.replicas)
        left -= count
        for name, needed in _resources_of_pod(role).items():
            total[name] += count * needed
    return {name: _quantity(total[name]) for name in sorted(total) if total[name] > 0}


def _resources_of_pod(role: Role) -> Sums:
    """What one pod needs: the requests of each container, and its limits where it requests nothing."""
    total: Sums = defaultdict(Decimal)
    containers: list[Manifest] = (role.template.get("spec") or {}).get("containers") or []
    for container in containers:
        asked = container.get("resources") or {}
        for name, text in {**(asked.get("limits") or {}), **(asked.get("requests") or {})}.items():
            total[name] += amount(text) or 0
    return total


def _quantity(total: Decimal) -> str:
    """A quantity in whole numbers or thousandths; finer values are rounded up as the API server does."""
    if total == total.to_integral_value():
        return f"{total:.0f}"
    return f"{(total * 1000).to_integral_value(ROUND_CEILING):.0f}m"


# --- the group's members


def membership(job: Job, role: Role, setup: Setup, *, joins: bool) -> Membership:
    """What marks a role's pods as members; pods that do not join still go to the group's scheduler, one by one."""
    gang = setup.gang
    if gang is None:
        return Membership()
    named = (role.template.get("spec") or {}).get("schedulerName")
    spec = {"schedulerName": gang.scheduler} if gang.scheduler and not named else {}
    if not joins:
        return Membership(spec=spec)
    if gang.by == "core":
        return Membership(spec={"schedulingGroup": {"podGroupName": job.name}})
    if gang.by == "volcano":
        notes = {VOLCANO_GROUP: job.name, VOLCANO_TASK: role.name.lower()}
        return Membership(annotations=notes, spec=spec)
    return Membership(labels={PLUGINS_GROUP: job.name}, spec=spec)


# --- the group's state


class GangReview(Struct, frozen=True, kw_only=True):
    given_up: tuple[GivenUp, ...] = ()
    """Pods that wait in a group that can no longer be filled: they are created again, outside of it."""
    joins: bool = True
    """Whether new pods join the group."""
    is_waiting: bool = False
    """Whether no pods are created yet."""
    obstacle: Obstacle | None = None
    """Why no pods are created, once the wait is long enough to be reported."""
    wake_after: float | None = None


def review(situation: Situation) -> GangReview:
    """Whether the group starts or waits. It can no longer be filled when tasks have finished meanwhile, or when
    the operator has another scheduler now and new pods will not join."""
    kept = situation.before.cluster
    is_left = kept is not None and kept.gang is not None and situation.setup.gang is None
    joins = _can_fill(situation)
    waiting = [pod for role in situation.census for pod in role.pending if pod.waits]
    stuck = tuple(GivenUp(pod) for pod in waiting) if is_left or not joins else ()
    wait = _wait(situation.give_up(stuck))
    if wait is None:
        return GangReview(given_up=stuck, joins=joins)
    patience = PATIENCE - (situation.now - situation.start).total_seconds()
    reported = wait if patience <= 0 else None
    return GangReview(given_up=stuck, joins=joins, is_waiting=True, obstacle=reported, wake_after=patience)


def _can_fill(situation: Situation) -> bool:
    """Whether enough pods are members, or can still become members. Volcano counts finished pods. The other
    schedulers do not, and a replacement would wait for ever: it starts outside of the group."""
    setup, census = situation.setup, situation.census
    if setup.gang is None or setup.gang.by == "volcano":
        return True
    made = _core_members(situation.observed.group) if setup.gang.by == "core" else 0
    needed = made or min_member(situation.job, setup)
    unfinished = sum(role.role.replicas - len(role.finished) for role in census)
    outside = sum(not pod.member for role in census for pod in (*role.running, *role.pending))
    return unfinished - outside >= needed


def _core_members(group: Group | None) -> int:
    """Members of an existing core group, which cannot be changed when the job is scaled; 0: there is none."""
    policy = (group.spec if group else {}).get("schedulingPolicy") or {}
    return int((policy.get("gang") or {}).get("minCount") or 0)


def _wait(situation: Situation) -> Obstacle | None:
    """Why no pods are created yet; None if some exist: then the gang has started, and every pod is needed.
    (An old Volcano may refuse such a pod for a while; that is reported and retried like any refusal.)"""
    job, gang, group = situation.job, situation.setup.gang, situation.observed.group
    if gang is None or any(role.running or role.pending or role.unknown for role in situation.census):
        return None
    if group is not None and group.deleting:
        return Obstacle(reasons.GROUP_DELETING, reasons.GROUP_DELETING_MESSAGE.format(job=job))
    if gang.by != "volcano" or (group is not None and group.phase not in ("", "Pending")):
        return None
    if group is None or not group.phase:
        return Obstacle(reasons.GROUP_NOT_SEEN, reasons.GROUP_NOT_SEEN_MESSAGE.format(job=job))
    queue = group.spec.get("queue") or "default"
    return Obstacle(reasons.GROUP_PENDING, reasons.GROUP_PENDING_MESSAGE.format(job=job, queue=queue))


def warnings(job: Job, setup: Setup) -> Iterator[Event]:
    """Warnings about a scheduler that a template names, which is kept and may not know the PodGroup, and about a
    schedulingPolicy without effect, except on a single machine, where all tasks start together anyway."""
    if setup.gang is None:
        if job.run_policy.scheduling is not None and job.size > 1 and not setup.ports:
            yield Event("Warning", reasons.NO_GANG, reasons.NO_GANG_MESSAGE)
        return
    ours = ("", setup.gang.scheduler or DEFAULT_SCHEDULER)
    others = [
        r.name for r in job.roles if ((r.template.get("spec") or {}).get("schedulerName") or "") not in ours
    ]
    if others:
        text = f"{reasons.TEMPLATE_SCHEDULER_MESSAGE} ({', '.join(others)})"
        yield Event("Warning", reasons.TEMPLATE_SCHEDULER, text)
