"""Condition types, reasons and messages: identical to upstream's, where upstream has them."""

from collections.abc import Iterable
from typing import Final

from tfyard.model.status import NAME_TAKEN as NAME_TAKEN

CREATED: Final = "Created"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"
BLOCKED: Final = "Blocked"
WAITING: Final = "Waiting"
STALLED: Final = "Stalled"

TFJOB_CREATED: Final = "TFJobCreated"
TFJOB_RUNNING: Final = "TFJobRunning"
TFJOB_RESTARTING: Final = "TFJobRestarting"
TFJOB_SUCCEEDED: Final = "TFJobSucceeded"
TFJOB_FAILED: Final = "TFJobFailed"
TFJOB_SUSPENDED: Final = "TFJobSuspended"
TFJOB_RESUMED: Final = "TFJobResumed"
UNBLOCKED: Final = "Unblocked"
INVALID_SPEC: Final = "InvalidSpec"
EXITED_WITH_CODE: Final = "ExitedWithCode"
EVICTED: Final = "Evicted"
DELETED: Final = "Deleted"
PEER_LOST: Final = "PeerLost"
CRASH_LOOP: Final = "CrashLoop"
NO_OUTPUT: Final = "NoOutput"
GOES_ON: Final = "GoesOn"
STALL_RESTARTED: Final = "Restarted"
LOGS_FORBIDDEN: Final = "LogsForbidden"
STOPPED_SIDECARS: Final = "StoppedSidecars"
STOPPED_RESTARTS: Final = "StoppedRestarts"
STOPPED_PODS: Final = "StoppedPods"
REPAIRED_SERVICE: Final = "RepairedService"
STATUS_UNREADABLE: Final = "StatusUnreadable"
TEMPLATE_RESTART_POLICY: Final = "SetPodTemplateRestartPolicy"
TEMPLATE_SCHEDULER: Final = "SetPodTemplateSchedulerName"
NO_GANG: Final = "NoGangScheduler"
GROUP_NOT_SEEN: Final = "PodGroupNotSeen"
GROUP_PENDING: Final = "PodGroupPending"
GROUP_DELETING: Final = "PodGroupDeleting"
QUEUE_TOO_SMALL: Final = "QueuedWithFewerPods"

CREATED_MESSAGE: Final = "TFJob {job.name} is created."
RUNNING_MESSAGE: Final = "TFJob {job.namespace}/{job.name} is running."
CRASHING_MESSAGE: Final = "TFJob {job.namespace}/{job.name} does not run: its tasks crash again and again."
SUCCEEDED_MESSAGE: Final = "TFJob {job.namespace}/{job.name} successfully completed."
SUSPENDED_MESSAGE: Final = "TFJob {job.name} is suspended."
RESUMED_MESSAGE: Final = "TFJob {job.name} is resumed."
RESTARTING_MESSAGE: Final = "job {job.name} is restarting because {roles} replica(s) failed."
REPLACING_MESSAGE: Final = "job {job.name} is restarting because {roles} replica(s) were evicted or deleted."
PEER_LOST_MESSAGE: Final = (
    "job {job.name} is restarting because {taken} was evicted or deleted, and {failed} failed after it:"
    " all tasks start again, which costs no retry."
)
TAKEN_MESSAGE: Final = (
    "job {job.name} is restarting because {taken} was evicted or deleted: all tasks start again together,"
    " which costs no retry."
)
ALL_FAILED_MESSAGE: Final = (
    "job {job.name} is restarting because {failed} failed: all tasks start again together."
)
STALLED_MESSAGE: Final = "{task} has written no line for more than {after}; the last one, at {at}: {line}"
SILENT_MESSAGE: Final = (
    "{task} has written no line for more than {after}, and none since all tasks ran at {at}"
)
STALL_ENDED_MESSAGE: Final = "TFJob {job.namespace}/{job.name} does not stall any more."
STALL_RESTARTED_MESSAGE: Final = (
    "job {job.name} is restarting because {stall}. All tasks start again together, which is one retry."
)
LOGS_FORBIDDEN_MESSAGE: Final = (
    "The operator may not read logs, so it cannot see whether the job stalls: it needs `get pods/log` in namespace"
    " {job.namespace}, which `tfyard install --read-logs` or the chart's rbac.readLogs=true grants."
)
SCALED_MESSAGE: Final = (
    "job {job.name} is restarting because it was scaled:"
    " all tasks start again together, which costs no retry."
)
TAKEN_AWAY: Final = "evicted or deleted"
TASK_FAILED_MESSAGE: Final = (
    "TFJob {job.namespace}/{job.name} has failed because {count} {role} replica(s) failed: {detail}"
)
BACKOFF_MESSAGE: Final = (
    "Job {job.name} has failed because it has reached the specified backoff limit"
    " ({allowed} allowed): {detail}"
)
DEADLINE_MESSAGE: Final = (
    "Job {job.name} has failed because it was active longer than specified deadline ({deadline} s)"
)
AMENDED_MESSAGES: Final = {
    STOPPED_SIDECARS: "Stopped the containers that were left after the end of the program in {objects}",
    STOPPED_PODS: "The job is suspended and keeps its pods, so their containers are stopped in {objects}",
    STOPPED_RESTARTS: "The job has ended, so the program is not started again in {objects}",
    REPAIRED_SERVICE: "Another client had changed selector or ports: put them back in {objects}",
}
INVALID_MESSAGE: Final = "TFJob {job.namespace}/{job.name} is invalid:"
NAMESAKE_MESSAGE: Final = (
    "{other}/{job.name} has the same name, so pods and Services of both would have the same names;"
    " delete or rename one of them"
)
STATUS_UNREADABLE_MESSAGE: Final = (
    "The stored status cannot be read. Without it finished tasks could run again, so the operator does nothing"
    " until it is corrected (kubectl -n {job.namespace} edit tfjob {job.name} --subresource=status):"
)
UNBLOCKED_MESSAGE: Final = "Nothing blocks the job any more."
TEMPLATE_RESTART_POLICY_MESSAGE: Final = (
    "Restart policy in pod template will be overwritten by restart policy in replica spec"
)
TEMPLATE_SCHEDULER_MESSAGE: Final = (
    "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten"
)
NO_GANG_MESSAGE: Final = "schedulingPolicy has no effect: the operator runs without --gang-scheduler"
GROUP_NOT_SEEN_MESSAGE: Final = "Volcano has not processed PodGroup {job.name} yet: is its scheduler running?"
GROUP_PENDING_MESSAGE: Final = (
    "PodGroup {job.name} is Pending: waiting for capacity in Volcano's queue {queue}"
)
GROUP_DELETING_MESSAGE: Final = "PodGroup {job.name} is still being deleted; pods wait for the next one"
QUEUE_TOO_SMALL_MESSAGE: Final = (
    "Kueue queued this job with {count} pods and admits no more; suspend and resume {job.name} to change that"
)


def listed(text: str, problems: Iterable[str]) -> str:
    """Text and problems in one line: tables show only the first, and `kubectl describe` misaligns the others."""
    return f"{text} {'; '.join(problems)}"
