"""What keeps a pod from running: the scheduler's words in its conditions, the kubelet's in its containers.

A pod that is being set up waits in silence: `setup_events` asks about it if that takes long.
"""

import re

from tfyard.model import Wait, WaitReason

from .views import ContainerStatus, PodView, Waiting

CRASH_LOOP = "CrashLoopBackOff"
BEING_SET_UP = ("", "ContainerCreating", "PodInitializing")
WORDS: dict[str, WaitReason] = {
    CRASH_LOOP: "CrashLoop",
    "CreateContainerConfigError": "Config",
    "RegistryUnavailable": "ImagePull",
    "SignatureValidationFailed": "ImagePull",
}
"""Other reasons are about the image if they say so, else about the start of the container."""
BACK_OFF = re.compile(r'Back-off pulling image ".*?": \w+: ')
"""The kubelet alternates between an error and its back-off, which repeats the error: the same to a reader."""


def wait_of(view: PodView, trainer: ContainerStatus | None) -> Wait | None:
    """`trainer`: the container that trains. As long as it runs, nobody waits for the others."""
    if view.status.phase in ("Succeeded", "Failed") or (trainer and trainer.state.running):
        return None
    if not view.spec.node_name:
        return _for_a_node(view)
    statuses = (*view.status.init_container_statuses, *view.status.container_statuses)
    waiting = (each.state.waiting for each in statuses)
    found = next((each for each in waiting if each and each.reason not in BEING_SET_UP), None)
    if found is None:
        return Wait("Mount", since=view.status.start_time) if view.status.start_time else None
    return _for_the_kubelet(view, trainer, found)


def _for_a_node(view: PodView) -> Wait | None:
    found = (c for c in view.status.conditions if c.type == "PodScheduled" and c.status == "False")
    condition = next(found, None)
    if condition is None or condition.reason not in ("Unschedulable", "SchedulingGated"):
        return None
    word: WaitReason = "Unschedulable" if condition.reason == "Unschedulable" else "SchedulingGated"
    is_claim = "persistentvolumeclaim" in condition.message.lower()
    return Wait("VolumeClaim" if is_claim else word, condition.message, view.metadata.creation_timestamp)


def _for_the_kubelet(view: PodView, trainer: ContainerStatus | None, found: Waiting) -> Wait:
    ended = trainer.last_state.terminated if trainer else None
    since = (ended.finished_at if ended else None) or view.status.start_time
    word = WORDS.get(found.reason) or ("ImagePull" if "Image" in found.reason else "Start")
    return Wait(word, BACK_OFF.sub("", found.message) or found.reason, since)
