"""Disruptions: tasks that were taken away, and failures of others that follow from it.

TensorFlow's collectives do not survive the loss of a member: its peers fail, and the replacement is refused until
they have started again, too. The status remembers the last disruption until all tasks have run for a minute. What
fails before that is not at fault: a restart in place by the kubelet is forgiven, and `together` starts all tasks
again, once.

A kubelet that takes a pod away by itself tells so when the pod has ended. A peer that has saved a checkpoint with
it may have ended before, so failures with TensorFlow's codes for that are judged only when this is ruled out.
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model import Disruption, Pod, RoleStatus, Status, Task
from tfyard.model.exit_codes import SAVED

from .census import Census, RoleCensus
from .situation import Situation

STEADY = 60.0
"""Seconds that all tasks must run until a disruption is over."""
NAMED_TASKS = 3
"""Maximum number of tasks that the status names."""
PEER_LOST = "peer"
"""Prefix of restarts in place in `excused` that followed a disruption."""


class Aftermath(Struct, frozen=True, kw_only=True):
    """What has been taken away, and what followed from it."""

    situation: Situation
    """The situation, in which restarts in place that followed the disruption do not count."""
    disruption: Disruption | None = None
    is_open: bool = False
    """Whether failures may still follow from the disruption."""
    is_new: bool = False
    """Whether this pass sees that tasks are taken away."""
    forgiven: frozenset[str] = frozenset()
    """Uids of pods that are restarted in place because of it."""
    failed_again: tuple[Pod, ...] = ()
    """Pods that were restarted in place because of it, and failed once more."""
    undecided: frozenset[str] = frozenset()
    """Uids of pods that have ended as after a save, while it may still turn out that a peer is taken away."""
    wake_after: float | None = None
    """Seconds until that is ruled out for one of them."""


def review(situation: Situation) -> Aftermath:
    """The last disruption. A task without peers cannot fail because of one; upstream knows none."""
    if situation.job.size == 1 or situation.site.kubeflow:
        return Aftermath(situation=situation)
    before = situation.before.disruption
    taken = tuple(dict.fromkeys(_taken(situation)))
    disruption = _merged(situation, before, taken) if taken else _recovering(situation, before)
    if disruption is None or not is_open(situation, disruption):
        return _waiting(Aftermath(situation=situation, disruption=disruption))
    return _forgiving(situation, disruption, is_new=bool(taken))


def is_open(situation: Situation, disruption: Disruption | None) -> bool:
    if disruption is None or disruption.restarted:
        return False
    recovered = disruption.recovered
    return recovered is None or _seconds_since(situation, recovered) < STEADY


def names(disruption: Disruption) -> str:
    return ", ".join(disruption.tasks)


# --- what was taken away


def _taken(situation: Situation) -> Iterator[str]:
    """Tasks that are taken away now. A pod that is given up for it is not seen again; for other signs, the status
    tells whether they are known."""
    before = situation.before.disruption
    named, still_open = before.tasks if before else (), is_open(situation, before)
    for role in situation.census:
        yield from (pod.task.name for pod in role.leaving if pod.phase != "Pending")
        yield from (pod.task.name for pod in role.failed if pod.disrupted)
        for pod in (*role.pending, *role.running):
            is_known = pod.task.name in named and (still_open or not pod.restart_due)
            if (pod.disrupted and not is_known) or _is_rebooted(situation.before, role, pod):
                yield pod.task.name
        yield from _vanished(situation.before, role)


def _is_rebooted(before: Status, role: RoleCensus, pod: Pod) -> bool:
    """Whether its node has restarted the pod's program, and the status does not tell yet."""
    memory = before.tasks.get(role.role.name)
    stored = memory.excused.get(str(pod.task.index), ()) if memory else ()
    return any(each not in stored for each in pod.excused)


def _vanished(before: Status, role: RoleCensus) -> Iterator[str]:
    """Tasks that ran when the status was stored, and whose pods have disappeared unseen, as from a lost node."""
    shown = before.replica_statuses.get(role.role.name, RoleStatus())
    if shown.size == role.role.replicas:
        present = shown.size - shown.succeeded - len(role.absent)
        gone = max(0, shown.active - present)
        yield from (Task(role.role.name, index).name for index in role.absent[:gone])


def _merged(situation: Situation, known: Disruption | None, taken: tuple[str, ...]) -> Disruption:
    """The disruption with the tasks that are taken away now: one that is still open, or else a new one."""
    if known is None or not is_open(situation, known):
        counted = _counted(situation)
        return Disruption(tasks=taken[:NAMED_TASKS], since=situation.stamp, restarts=counted)
    tasks = tuple(dict.fromkeys((*known.tasks, *taken)))[:NAMED_TASKS]
    counted = {task: count for task, count in known.restarts.items() if task not in taken}
    return replace(known, tasks=tasks, recovered=None, restarts=counted)


def _counted(situation: Situation) -> dict[str, int]:
    """Restarts in place by task that counted before the disruption: those that the status has. One that followed a
    save a moment ago belongs to the disruption."""
    counted: dict[str, int] = {}
    for role in situation.census:
        shown = situation.before.replica_statuses.get(role.role.name)
        new = role.restarts - shown.restarts if shown else 0
        for pod in _in_place(role):
            own, saved = role.own_restarts(pod), not pod.restart_due and _undecided_for(situation, pod) > 0
            counted[pod.task.name] = own - min(own, max(0, new, int(saved)))
            new -= own
    return {task: count for task, count in counted.items() if count}


def _recovering(situation: Situation, known: Disruption | None) -> Disruption | None:
    """The disruption with the time since which all tasks run."""
    if known is None or not is_open(situation, known):
        return known
    if not _is_complete(situation.census):
        return replace(known, recovered=None)
    return replace(known, recovered=known.recovered or situation.stamp)


def _is_complete(census: Census) -> bool:
    return not any(
        role.absent or role.pending or role.failed or role.stale or role.leaving or role.unknown
        for role in census
    ) and not any(pod.restart_due for role in census for pod in role.running)


# --- ends of which it is not known yet whether they followed


def _waiting(aftermath: Aftermath) -> Aftermath:
    """The aftermath with the pods that are not judged yet. If no other pod is left, none is being taken away."""
    situation, ended, others = aftermath.situation, dict[str, float](), False
    for role in situation.census:
        for pod in (*role.pending, *role.running, *role.failed):
            left = _undecided_for(situation, pod)
            if left > 0:
                ended[pod.uid] = left
            elif pod in role.running:
                others = True
    if not (ended and others):
        return aftermath
    return replace(aftermath, undecided=frozenset(ended), wake_after=min(ended.values()))


def _undecided_for(situation: Situation, pod: Pod) -> float:
    """Seconds for which it stays unknown why the pod's program has saved a checkpoint and ended."""
    if pod.exit_code not in SAVED or pod.disrupted or pod.run_ended is None:
        return 0.0
    return situation.site.eviction_lag - _seconds_since(situation, pod.run_ended)


def _seconds_since(situation: Situation, time: datetime) -> float:
    return (situation.now - time).total_seconds()


# --- restarts in place that followed


def _forgiving(situation: Situation, disruption: Disruption, *, is_new: bool) -> Aftermath:
    """The situation without the restarts in place since the disruption. A task's second one is a failure for which
    all tasks start again."""
    census, forgiven, again = situation.census, set[str](), []
    for role in census:
        for pod in _in_place(role):
            new = role.own_restarts(pod) - disruption.restarts.get(pod.task.name, 0)
            is_due = pod.restart_due and not pod.disrupted
            if new + is_due <= 0:
                continue
            forgiven.add(pod.uid)
            census = census.forgive(pod, _numbered(pod, new), is_due=is_due)
            if new + is_due + (pod.task.name in disruption.forgiven) > 1:
                again.append(pod)
            if new > 0:
                tasks = dict.fromkeys((*disruption.forgiven, pod.task.name))
                disruption = replace(disruption, forgiven=tuple(tasks))
    return Aftermath(
        situation=replace(situation, census=census),
        disruption=disruption,
        is_open=True,
        is_new=is_new,
        forgiven=frozenset(forgiven),
        failed_again=tuple(again),
    )


def _in_place(role: RoleCensus) -> Iterator[Pod]:
    return (pod for pod in (*role.pending, *role.running) if pod.restarts or pod.restart_due)


def _numbered(pod: Pod, new: int) -> frozenset[str]:
    """The last restarts of the pod as they stand in `excused`."""
    return frozenset(f"{PEER_LOST}/{pod.restarts - each}" for each in range(new))
