"""What a pod means for its task now: above all, whether the task has finished."""

from typing import Literal, get_args

from tfyard.model import Pod

PodState = Literal["finished", "pending", "running", "failed", "leaving", "stale"]
"""
finished  the program ended by itself with success: the task need not run again
failed    the program ended badly by itself, and nobody has judged it yet
leaving   asked to stop: however its program ends, the task needs a new pod once the name is free
stale     given up earlier: whatever becomes of it was counted then
"""
STATES: tuple[PodState, ...] = get_args(PodState)


def state_of(pod: Pod, attempt: int) -> PodState:
    """`attempt` is the one that the status remembers for the task."""
    if pod.attempt < attempt:
        return "stale"
    if pod.end and not pod.asked_to_stop:  # even if it is being deleted now
        return "finished" if pod.end == "Succeeded" else "failed"
    if pod.deleting is not None:
        return "leaving"
    return "pending" if pod.phase == "Pending" else "running"


def is_active(pod: Pod) -> bool:
    """Whether containers of it run or may start, even if its program has ended."""
    return pod.phase not in ("Succeeded", "Failed")
