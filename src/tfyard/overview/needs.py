"""What else to look at, given what is known: most answers need a few requests, and no user may read everything."""

import re

from tfyard.model import ROLES
from tfyard.model.names import QUEUE_NAME
from tfyard.overview.causes import peers, queue, volumes
from tfyard.overview.evidence import Evidence, last_end
from tfyard.overview.objects import Pod

LEADING = [role.lower() for role in ROLES]
"""The chief's log tells the most."""
MOST_LOGS = 8
"""Of a large job: the first tasks tell enough, and each log is a request."""


def collections(evidence: Evidence) -> set[str]:
    """Names of fields of `Evidence`, after its pods are known."""
    if evidence.status.is_finished:
        return set()
    messages = [_unscheduled(pod) for pod in evidence.waiting]
    needed = set[str]()
    if any(re.search(volumes.CLAIM_PATTERN, message) for message in messages):
        needed |= {"claims", "classes"}
    if any(message and not re.search(volumes.CLAIM_PATTERN, message) for message in messages):
        needed.add("nodes")
    if any("Insufficient" in message for message in messages):
        needed.add("neighbours")
    if not evidence.status.conditions or not (evidence.tasks or _is_held_back(evidence)):
        needed.add("leases")
    if QUEUE_NAME in evidence.labels and (queue.is_suspended(evidence) or queue.is_gated(evidence)):
        needed.add("workloads")
    return needed


def _is_held_back(evidence: Evidence) -> bool:
    """It is known why there are no pods."""
    return evidence.status.has("Blocked") or evidence.status.has("Suspended")


def of_network(evidence: Evidence) -> set[str]:
    """After the logs are known."""
    return {"slices", "policies"} if peers.is_unreached(evidence) else set()


def logs(evidence: Evidence) -> list[Pod]:
    """Whose logs are needed: of pods that run, or that failed without a word."""
    if evidence.status.has("Succeeded"):
        return []
    running = () if evidence.status.is_finished else evidence.running
    found = [pod for pod in evidence.tasks if pod in running or _is_mute(pod)]
    return sorted(found, key=_importance)[:MOST_LOGS]


def _importance(pod: Pod) -> tuple[object, ...]:
    """Pods that failed, then those that lead the training."""
    role, _, index = pod.task.rpartition("-")
    rank = LEADING.index(role) if role in LEADING else len(LEADING)
    return not _is_mute(pod), rank, int(index) if index.isdigit() else 0


def _is_mute(pod: Pod) -> bool:
    ended = last_end(pod)
    return ended is not None and not ended.message and ended.reason != "OOMKilled"


def _unscheduled(pod: Pod) -> str:
    condition = pod.condition("PodScheduled")
    return condition.message if condition and condition.status == "False" else ""
