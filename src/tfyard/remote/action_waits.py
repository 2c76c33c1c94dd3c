"""Waiting until what was asked for is so: pods are gone, or their successors run."""

import time
from collections.abc import Callable, Iterator

from tfyard.errors import TfyardError
from tfyard.kube import NotFound, requests
from tfyard.kube.sync import SyncClient
from tfyard.overview.waiting import TIMEOUT_CODE

from . import pod_starts
from .actions import Intent
from .job_objects import Belongings, counted
from .jobs import Found

LOOK_EVERY = 0.5
"""Seconds."""

Say = Callable[[str], None]


class TimeOver(TfyardError):
    """As `timeout` and `tfyard wait` end."""

    exit_code = TIMEOUT_CODE


def until_done(client: SyncClient, intent: Intent, say: Say, timeout: float) -> None:
    """`say` is called with what is waited for, once per change."""
    look = _unstarted if intent.verb == "restart" else _left
    deadline, said = time.monotonic() + timeout, ""
    for waiting in _repeated(lambda: look(client, intent)):
        if not waiting:
            return
        if waiting != said:
            say(f"waiting: {waiting}")
            said = waiting
        if time.monotonic() > deadline:
            raise TimeOver(f"{intent.found.name}: timed out, still waiting: {said}")


def _repeated(look: Callable[[], str]) -> Iterator[str]:
    while True:
        yield look()
        time.sleep(LOOK_EVERY)


def _left(client: SyncClient, intent: Intent) -> str:
    """What is not gone yet."""
    if intent.verb == "delete" and _now(client, intent.found) is not None:
        return f"the job {intent.found.name} to be gone"
    here = {pod.metadata.uid for pod in Belongings(client, intent.found).pods()}
    return "".join(
        f"{each} to be gone" for each in counted("pod", [t for t, uid in intent.pods.items() if uid in here])
    )


def _unstarted(client: SyncClient, intent: Intent) -> str:
    """Which task does not run again yet, and why."""
    now = _now(client, intent.found)
    if now is None or now.summary.status.is_finished:
        raise TfyardError(
            f"{intent.found.name} has ended before its tasks ran again; `tfyard why` may say why"
        )
    pods = Belongings(client, now).pods()
    new = {pod.task: pod for pod in pods if pod.metadata.uid != intent.pods.get(pod.task)}
    for task in intent.pods:
        if task not in new:
            return f"{task}: its old pod ends"
        if not pod_starts.has_begun(new[task]):
            return f"{task}: {pod_starts.waiting_for(new[task])}"
    return ""


def _now(client: SyncClient, found: Found) -> Found | None:
    """None: it is gone, even if there is a new one of its name."""
    try:
        now = Found(found.resource, client.send(requests.get(found.path)))
    except NotFound:
        return None
    return now if now.uid == found.uid else None
