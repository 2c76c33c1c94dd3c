"""The state of a task by its pod: above all, whether the task has finished."""

from typing import Literal, get_args

from tfyard.model import Pod

PodState = Literal["finished", "pending", "running", "failed", "leaving", "stale", "unknown"]
"""
finished  the program ended by itself with success: the task need not run again
failed    the program failed by itself, and the restart policy has not been applied yet
leaving   asked to stop: however its program ends, the task needs a new pod once the name is free
stale     given up earlier: whatever becomes of it was counted then
unknown   it exists and cannot be read: neither replaced nor counted
"""
STATES: tuple[PodState, ...] = get_args(PodState)


def state_of(pod: Pod, attempt: int) -> PodState:
    """The state of a pod; `attempt`: the task's attempt in the status."""
    if pod.attempt < attempt:
        return "stale"
    if pod.unreadable:
        return "unknown"
    if pod.end and not pod.asked_to_stop:  # even if it is being deleted now
        return "finished" if pod.end == "Succeeded" else "failed"
    if pod.deleting is not None or pod.asked_to_stop:
        return "leaving"
    return "pending" if pod.phase == "Pending" else "running"


def is_active(pod: Pod) -> bool:
    """Whether containers of the pod run or may start, even if its program has ended."""
    return pod.phase not in ("Succeeded", "Failed")


def goes_on(pod: Pod) -> bool:
    """Whether the pod's program runs, or will for the first time. The phase does not tell: it is Running for about
    a second after the last container has ended, and while the kubelet waits to start one again."""
    return is_active(pod) and not pod.end and not pod.restart_due
