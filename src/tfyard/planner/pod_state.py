"""What a pod means for its task now: above all, whether the task has finished."""

from typing import Literal, get_args

from tfyard.model import Pod

PodState = Literal["finished", "pending", "running", "failed", "leaving", "stale"]
"""
finished  the program ended with success: the task need not run again
failed    the program ended badly, and nobody has judged it yet
leaving   being deleted by somebody: the task needs a new pod once the name is free
stale     given up earlier: whatever becomes of it was counted then
"""
STATES: tuple[PodState, ...] = get_args(PodState)


def state_of(pod: Pod, attempt: int, was_suspended: bool) -> PodState:
    """`attempt` is the one that the status remembers for the task."""
    if pod.attempt < attempt:
        return "stale"
    if pod.phase == "Succeeded" and not (was_suspended and pod.deleting is not None):
        return "finished"  # a pod that the suspension deletes may save its work and exit 0 as well
    if pod.deleting is not None:
        return "leaving"
    if pod.phase == "Failed":
        return "failed"
    return "pending" if pod.phase == "Pending" else "running"


def is_active(pod: Pod) -> bool:
    return pod.phase not in ("Succeeded", "Failed")
