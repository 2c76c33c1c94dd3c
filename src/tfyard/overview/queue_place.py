"""The place of a job that waits in a queue of Kueue: at which position, and behind which jobs."""

from msgspec import Struct

from tfyard.model.names import QUEUE_NAME
from tfyard.overview.cause import named
from tfyard.overview.evidence import Evidence, seen
from tfyard.views.objects import PendingWorkload, QueuedWorkload

KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")


class QueuePlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    queue: str
    position: int = 0
    """Among the jobs of its LocalQueue, from 1; 0: Kueue does not tell it."""
    waiting: int = 0
    """Number of jobs that wait in the LocalQueue."""
    shared_position: int = 0
    """Among the jobs of all queues that share its ClusterQueue."""
    behind: tuple[str, ...] = ()
    """Jobs of its LocalQueue that are before it."""

    @property
    def words(self) -> str:
        """The place in a sentence; empty: the position is not known."""
        if not self.position:
            return ""
        behind = f" behind {named(self.behind)}" if self.behind else ""
        shared = f" ({self.shared_position} in its ClusterQueue)" * (self.shared_position != self.position)
        return f"position {self.position} of {self.waiting}{shared}{behind}"


def of_job(evidence: Evidence) -> QueuePlace | None:
    """The value is None if the job waits in no queue."""
    queue = evidence.labels.get(QUEUE_NAME, "")
    if evidence.status.is_finished or not queue or not (is_suspended(evidence) or is_gated(evidence)):
        return None
    workload, pending = workload_of(evidence), seen(evidence.pending)
    own = next((each for each in pending if workload and each.name == workload.name), None)
    if own is None:
        return QueuePlace(queue=queue)
    before = [each for each in pending if each.position_in_local_queue < own.position_in_local_queue]
    return QueuePlace(
        queue=queue,
        position=own.position_in_local_queue + 1,
        waiting=len(pending),
        shared_position=own.position_in_cluster_queue + 1,
        behind=tuple(map(_title, sorted(before, key=lambda each: each.position_in_local_queue))),
    )


def is_suspended(evidence: Evidence) -> bool:
    """Whether the job is suspended, in either of the places of a run policy."""
    return bool(evidence.spec.get("suspend") or (evidence.spec.get("runPolicy") or {}).get("suspend"))


def is_gated(evidence: Evidence) -> bool:
    gates = [gate.get("name") for pod in evidence.waiting for gate in pod.spec.scheduling_gates]
    return any(gate in KUEUE_GATES for gate in gates)


def workload_of(evidence: Evidence) -> QueuedWorkload | None:
    """The Workload of the TFJob itself, or of the group of its pods, which has the job's name."""
    pods = {pod.metadata.uid for pod in seen(evidence.pods)}
    for each in seen(evidence.workloads):
        owners = {owner.uid for owner in each.metadata.owner_references}
        if evidence.uid in owners or bool(owners & pods) or each.name == evidence.name:
            return each
    return None


def _title(workload: PendingWorkload) -> str:
    owners = workload.metadata.owner_references
    return owners[0].name if owners else workload.name
