"""How attempts ended without success: kept in the status, because pods, their logs and events are soon gone.

The status of a job without failures has none. An ending that a pod still shows is not added twice, not even when
the limits have dropped it: the newest endings stay, in the order of their times.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from tfyard.model import ENDINGS_PER_JOB, ENDINGS_PER_TASK, LAST_WORDS, Ending, Pod

from . import reasons
from .situation import Situation, whole_seconds

NO_PEERS: Mapping[str, str] = {}
UNTOLD = ("", "Error")
"""Reasons that say nothing about an end."""
UNKNOWN_TIME = datetime.min.replace(tzinfo=UTC)


def remember(
    situation: Situation, over: Iterable[Pod] = (), peers: Mapping[str, str] = NO_PEERS
) -> tuple[Ending, ...]:
    """The endings of the status and of the pods; `over`: pods whose attempt ends by this decision; `peers`: uid of
    a pod whose program failed because other tasks were taken away -> those tasks."""
    known, gone = situation.before.endings, {pod.uid: pod for pod in over}
    ends = [(pod, _over(pod, situation.stamp)) for pod in gone.values()]
    ends += ((pod, _ending(pod, restart)) for pod, restart in _ended(situation) if pod.uid not in gone)
    shown = [_with_peer(ending, peers.get(pod.uid, "")) for pod, ending in ends]
    stored, followed = {_identity(ending) for ending in known}, {_identity(e): e for e in shown if e.peer}
    new = [ending for ending in shown if _identity(ending) not in stored]
    known = tuple(ending if ending.peer else followed.get(_identity(ending), ending) for ending in known)
    return _newest((*known, *new)) if new else known


def _with_peer(ending: Ending, peer: str) -> Ending:
    """The ending with the tasks that were taken away before. A reason such as OOMKilled says more, and stays."""
    if not peer:
        return ending
    return replace(ending, peer=peer, reason=reasons.PEER_LOST if ending.reason in UNTOLD else ending.reason)


def _ended(situation: Situation) -> Iterator[tuple[Pod, int]]:
    """Pods whose status has a run that ended, each with the number of restarts in place before that run."""
    for role in situation.census:
        yield from ((pod, pod.restarts) for pod in role.failed)
        for pod in (*role.pending, *role.running):
            if pod.exit_code is not None and (pod.restarts or pod.restart_due):
                yield pod, pod.restarts - 1 if pod.running_since else pod.restarts


def _over(pod: Pod, now: datetime) -> Ending:
    """The ending of an attempt that is over. That the pod was deleted or evicted says more than the exit code."""
    ending = _ending(pod, pod.restarts) if pod.end else _stopped(pod)
    is_deleted = not _is_told(pod) and (pod.asked_to_stop or not pod.end)
    reason = reasons.DELETED if is_deleted else ending.reason
    return replace(ending, finished=ending.finished or now, reason=reason)


def _ending(pod: Pod, restart: int) -> Ending:
    """The ending of the run that the pod's exit code is about."""
    return Ending(
        task=pod.task.name,
        attempt=pod.attempt + 1,
        restart=restart,
        started=_to_the_second(pod.run_started or (None if restart else pod.started)),
        finished=_to_the_second(pod.run_ended),
        exit_code=pod.exit_code,
        container=pod.failed_init,
        reason=pod.reason,
        message=last_words(pod.message),
    )


def _stopped(pod: Pod) -> Ending:
    """The ending of a program that still runs: an exit code would be about an earlier run."""
    return Ending(
        task=pod.task.name,
        attempt=pod.attempt + 1,
        restart=pod.restarts,
        started=_to_the_second((pod.running_since if pod.restarts else None) or pod.started),
        reason=pod.reason,
        message=last_words(pod.message) if _is_told(pod) else "",
    )


def _is_told(pod: Pod) -> bool:
    """Whether reason and message are about the end of a program that still runs."""
    return pod.disrupted or pod.reason == reasons.STALLED


def last_words(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LAST_WORDS else f"…{text[1 - LAST_WORDS :]}"


def _newest(endings: Iterable[Ending]) -> tuple[Ending, ...]:
    """The newest endings, within the limits per task and per job."""
    by_task: dict[str, list[Ending]] = defaultdict(list)
    for ending in sorted(endings, key=_order):
        by_task[ending.task].append(ending)
    kept = (ending for of_task in by_task.values() for ending in of_task[-ENDINGS_PER_TASK:])
    return tuple(sorted(kept, key=_order)[-ENDINGS_PER_JOB:])


def _order(ending: Ending) -> tuple[object, ...]:
    return ending.finished or ending.started or UNKNOWN_TIME, *_identity(ending)


def _identity(ending: Ending) -> tuple[str, int, int]:
    return ending.task, ending.attempt, ending.restart


def _to_the_second(at: datetime | None) -> datetime | None:
    return whole_seconds(at) if at else None
