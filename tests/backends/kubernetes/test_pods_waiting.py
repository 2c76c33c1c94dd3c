"""What keeps a pod from running, in strings of Kubernetes 1.36."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tfyard.model import Pod, Wait

from .test_pods import ASKED_AT, ended, read, time

CREATED, STARTED = time(-60), time(-50)
NOT_FOUND = 'failed to pull and unpack image "registry.example/train:2": not found'
GPUS = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate"
CLAIM = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
NO_CLAIM = 'persistentvolumeclaim "out" not found'
GATED = "Scheduling is blocked due to non-empty scheduling gates"
SECRET = 'secret "token" not found'
NO_PROGRAM = 'exec: "pyhton": executable file not found in $PATH'


def pending(reason: str, message: str, **more: Any) -> Pod:
    waiting: dict[str, Any] = {"state": {"waiting": {"reason": reason, "message": message}}}
    known = {"spec": {"nodeName": "n1"}, "startTime": STARTED, "main": waiting}
    return read("Pending", **{**known, **more})


def unscheduled(reason: str, message: str) -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return read("Pending", meta={"creationTimestamp": CREATED}, conditions=[condition])


def at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "message", "word"),
    [
        ("Unschedulable", GPUS, "Unschedulable"),
        ("Unschedulable", CLAIM, "VolumeClaim"),
        ("Unschedulable", NO_CLAIM, "VolumeClaim"),
        ("SchedulingGated", GATED, "SchedulingGated"),
    ],
)
def test_the_scheduler_says_why_there_is_no_node(reason: str, message: str, word: Any) -> None:
    assert unscheduled(reason, message).wait == Wait(word, message, at(CREATED))


@pytest.mark.parametrize(
    ("reason", "message", "word"),
    [
        ("ErrImagePull", NOT_FOUND, "ImagePull"),
        ("InvalidImageName", 'Failed to apply default image tag "X:": couldn\'t parse', "ImagePull"),
        ("ErrImageNeverPull", 'Container image "x" is not present', "ImagePull"),
        ("RegistryUnavailable", "image pull failed for x because the registry is unavailable", "ImagePull"),
        ("CreateContainerConfigError", SECRET, "Config"),
        ("RunContainerError", NO_PROGRAM, "Start"),
        ("CreateContainerError", "context deadline exceeded", "Start"),
    ],
)
def test_the_kubelet_says_why_a_container_does_not_start(reason: str, message: str, word: Any) -> None:
    assert pending(reason, message).wait == Wait(word, message, at(STARTED))


def test_an_error_and_the_back_off_after_it_are_the_same_wait() -> None:
    back_off = f'Back-off pulling image "registry.example/train:2": ErrImagePull: {NOT_FOUND}'
    assert pending("ImagePullBackOff", back_off).wait == pending("ErrImagePull", NOT_FOUND).wait
    old = 'Back-off pulling image "registry.example/train:2"'
    assert pending("ImagePullBackOff", old).wait == Wait("ImagePull", old, at(STARTED))


def test_an_init_container_may_be_what_is_waited_for() -> None:
    failing = {"state": {"waiting": {"reason": "ErrImagePull", "message": NOT_FOUND}}}
    assert pending("PodInitializing", "", init=failing).wait == Wait("ImagePull", NOT_FOUND, at(STARTED))


def test_a_pod_that_is_being_set_up_waits_in_silence() -> None:
    assert pending("ContainerCreating", "").wait == Wait("Mount", "", at(STARTED))
    assert read("Pending").wait is None


def test_a_pod_that_runs_or_has_ended_does_not_wait() -> None:
    broken = {"state": {"waiting": {"reason": "ErrImagePull", "message": NOT_FOUND}}}
    running = {"state": {"running": {"startedAt": STARTED}}}
    assert pending("", "", main=running, sidecar=broken).wait is None
    assert read("Failed", main=ended(1)).wait is None


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_that_has_ended_waits_for_nothing_though_its_pod_is_still_running(code: int) -> None:
    seen = {"spec": {"nodeName": "n1"}, "startTime": STARTED}
    assert read("Running", "OnFailure", main=ended(code), **seen).wait is None
    assert pending("PodInitializing", "", restart="OnFailure", init=ended(1)).wait is None


def test_a_crash_loop_tells_of_the_run_before_and_of_the_present_one() -> None:
    last = {"lastState": ended(1, at=-3, message="boom")["state"], "restartCount": 2}
    looping = {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}, **last}
    node = {"nodeName": "n1"}
    pod = read("Running", "OnFailure", main=looping, spec=node, startTime=STARTED)
    assert pod.wait == Wait("CrashLoop", "back-off 20s", at(time(-3)))
    assert (pod.run_started, pod.run_ended) == (at(time(-99)), at(time(-3)))
    assert pod.running_since is None
    again = read(
        "Running", "OnFailure", main={"state": {"running": {"startedAt": time(0)}}, **last}, spec=node
    )
    assert (again.wait, again.running_since, again.run_ended) == (None, ASKED_AT, at(time(-3)))


NEVER = "1970-01-01T00:00:00Z"
NOT_STARTED = ended(128, at=-3, reason="StartError", message=NO_PROGRAM, startedAt=NEVER)["state"]
"""As a kubelet of Kubernetes 1.36 with containerd 2.2 reports it."""
START_STATES: dict[str, dict[str, Any]] = {
    "it could not be started": {"waiting": {"reason": "RunContainerError", "message": NO_PROGRAM}},
    "it is tried again later": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}},
    "it is about to be tried again": {"waiting": {"reason": "ContainerCreating"}},
}


@pytest.mark.parametrize("state", START_STATES.values(), ids=START_STATES.keys())
def test_a_program_that_cannot_be_started_does_not_run_though_a_kubelet_calls_its_pod_running(
    state: dict[str, Any],
) -> None:
    main = {"state": state, "lastState": NOT_STARTED, "restartCount": 1}
    pod = read("Running", "OnFailure", main=main, spec={"nodeName": "n1"}, startTime=STARTED)
    assert pod.phase == "Pending"
    assert pod.wait == Wait("Start", NO_PROGRAM, at(time(-3)), failed=True)
    assert (pod.end, pod.exit_code, pod.restarts) == ("", 128, 1)
    assert (pod.run_started, pod.run_ended, pod.restart_due) == (None, at(time(-3)), True)


def test_a_program_that_could_not_be_started_is_not_started_again_under_never() -> None:
    pod = read("Failed", main={"state": NOT_STARTED}, spec={"nodeName": "n1"}, startTime=STARTED)
    assert (pod.phase, pod.end, pod.exit_code, pod.wait) == ("Failed", "Failed", 128, None)
    between = read("Running", "OnFailure", main={"state": NOT_STARTED}, startTime=STARTED)
    assert (between.phase, between.restart_due) == ("Pending", True)


def test_a_program_that_could_be_started_at_last_runs() -> None:
    main = {"state": {"running": {"startedAt": time(0)}}, "lastState": NOT_STARTED, "restartCount": 1}
    pod = read("Running", "OnFailure", main=main, spec={"nodeName": "n1"}, startTime=STARTED)
    assert (pod.phase, pod.wait) == ("Running", None)


def test_an_init_container_that_cannot_be_started_is_told_as_such() -> None:
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}
    pod = pending("PodInitializing", "", init={"state": state, "lastState": NOT_STARTED, "restartCount": 2})
    assert pod.wait == Wait("Start", NO_PROGRAM, at(time(-3)), failed=True)


def test_an_init_container_in_a_crash_loop_tells_of_its_last_run() -> None:
    last = {"lastState": ended(7, at=-3, message="no code")["state"], "restartCount": 2}
    looping = {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}, **last}
    pod = pending("PodInitializing", "", init=looping)
    assert (pod.restart_due, pod.exit_code, pod.message) == (True, 7, "no code")


def test_the_reason_of_a_disruption_is_read_from_its_condition() -> None:
    message = "Eviction API: evicting"
    reason = "EvictionByEvictionAPI"
    taken = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    running = {"state": {"running": {"startedAt": STARTED}}}
    pod = read("Running", main=running, conditions=[taken], meta={"deletionTimestamp": time(30)})
    assert (pod.disrupted, pod.reason, pod.message) == (True, reason, message)
