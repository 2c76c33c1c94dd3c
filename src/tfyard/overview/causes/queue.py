"""The job waits for its turn: suspended, in a queue of Kueue, or for a gang scheduler to place all of it."""

from collections.abc import Iterator
from datetime import datetime

from tfyard.model.names import QUEUE_NAME
from tfyard.overview.cause import Cause, Quote, cut
from tfyard.overview.causes.refusals import BLOCKED, is_of_queue
from tfyard.overview.evidence import Evidence, seen
from tfyard.overview.objects import Condition, QueuedWorkload

KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:  # noqa: ARG001
    if evidence.status.is_finished:
        return
    blocked = evidence.status.condition(BLOCKED)
    if blocked is not None and blocked.status == "True" and is_of_queue(blocked.reason):
        quote = Quote("condition", cut(blocked.message), blocked.last_transition_time)
        yield Cause(kind="gang", sentence=cut(blocked.message), fix=_gang_fix(evidence), evidence=(quote,))
    queue = evidence.labels.get(QUEUE_NAME, "")
    if queue and (is_suspended(evidence) or is_gated(evidence)):
        yield _queued(evidence, queue)
    elif is_suspended(evidence):
        yield _suspended(evidence)


def _gang_fix(evidence: Evidence) -> str:
    return f"kubectl -n {evidence.namespace} describe podgroup {evidence.name}"


def is_suspended(evidence: Evidence) -> bool:
    """In either of the places of a run policy."""
    return bool(evidence.spec.get("suspend") or (evidence.spec.get("runPolicy") or {}).get("suspend"))


def is_gated(evidence: Evidence) -> bool:
    gates = [gate.get("name") for pod in evidence.waiting for gate in pod.spec.scheduling_gates]
    return any(gate in KUEUE_GATES for gate in gates)


def _suspended(evidence: Evidence) -> Cause:
    condition = evidence.status.condition("Suspended")
    at = condition.last_transition_time if condition else None
    return Cause(
        kind="suspended",
        sentence="it is suspended, and starts when somebody resumes it",
        fix=f"tfyard resume {evidence.name} -n {evidence.namespace}",
        evidence=(Quote("apiserver", "suspend: true", at),),
    )


def _queued(evidence: Evidence, queue: str) -> Cause:
    workload = next((each for each in seen(evidence.workloads) if _is_of_job(each, evidence)), None)
    if workload is None:
        doubt = "does Kueue run, and is there such a queue?"
        sentence = f"it waits for queue {queue}, and Kueue has not taken it up: {doubt}"
        fix = f"kubectl -n {evidence.namespace} get localqueues"
        said = Quote("apiserver", f"label {QUEUE_NAME}: {queue}; no Workload of Kueue", evidence.created)
        return Cause(kind="queue", sentence=sentence, fix=fix, evidence=(said,))
    refusal = _refusal(workload)
    words = refusal.message if refusal else "admitted, and not started yet"
    return Cause(
        kind="queue",
        sentence=f"it waits in queue {queue}: {cut(words, 300)}",
        fix=f"kubectl -n {evidence.namespace} describe workload {workload.name}",
        evidence=(Quote("condition", cut(words), refusal.last_transition_time if refusal else None),),
    )


def _is_of_job(workload: QueuedWorkload, evidence: Evidence) -> bool:
    """Of the TFJob itself, or of its pods as a group, which has the job's name."""
    owners = {owner.uid for owner in workload.metadata.owner_references}
    pods = {pod.metadata.uid for pod in seen(evidence.pods)}
    return evidence.uid in owners or bool(owners & pods) or workload.name == evidence.name


def _refusal(workload: QueuedWorkload) -> Condition | None:
    for wanted in ("QuotaReserved", "Admitted"):
        for condition in workload.status.conditions:
            if condition.type == wanted and condition.status == "False":
                return condition
    return None
