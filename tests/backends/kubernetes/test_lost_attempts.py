"""Restarted pods that come back without their attempt wait longer each time."""

from tfyard.backends.kubernetes.lost_attempts import LostAttempts, check, is_restart
from tfyard.backends.kubernetes.views import Meta
from tfyard.model import Create, Delete, Obstacle
from tfyard.model.backoff import Backoff

HOUR = Backoff(first=3600.0, longest=3600.0)
NOTHING = Backoff(first=0.0, longest=0.0)
LOST = Obstacle("AnnotationsRemoved", "pod train-worker-0 lost its annotation")


def pod(attempt: int) -> Create:
    meta = {"name": "train-worker-0", "annotations": {"tfyard.dev/attempt": str(attempt)}}
    return Create({"kind": "Pod", "metadata": meta})


SERVICE = Create({"kind": "Service", "metadata": {"name": "train"}})


def test_only_a_pod_that_is_not_the_first_attempt_is_a_restart() -> None:
    assert is_restart(pod(1))
    assert not any(map(is_restart, (pod(0), SERVICE, Delete("Pod", "train-worker-0"))))


def test_a_restarted_pod_must_come_back_as_its_attempt() -> None:
    assert check(pod(2), Meta("x", annotations={"tfyard.dev/attempt": "2"})) is None
    lost = check(pod(2), Meta("x"))
    assert lost is not None
    assert lost.message.startswith(
        "pod train-worker-0 lost its annotation tfyard.dev/attempt when it was created"
    )
    assert check(pod(0), Meta("x")) is None, "without it, a pod reads as attempt 0"
    assert check(SERVICE, Meta("x")) is None


def test_restarted_pods_wait_and_nothing_else_does() -> None:
    lost, actions = LostAttempts(HOUR), [pod(1), pod(0), SERVICE, Delete("Pod", "train-worker-0")]
    assert lost.allowed("u-1", actions) == actions
    lost.review("u-1", [], LOST)
    assert lost.allowed("u-1", actions) == actions[1:]
    assert lost.allowed("u-2", actions) == actions, "another job"
    lost.review("u-1", [pod(0)], None)
    assert lost.waits("u-1") == LOST, "a first attempt proves nothing"


def test_the_wait_is_over_in_time_and_forgotten_when_an_attempt_is_kept() -> None:
    lost = LostAttempts(NOTHING)
    lost.review("u-1", [], LOST)
    assert lost.waits("u-1") is None
    assert len(lost) == 1, "the next wait is longer"
    lost.review("u-1", [pod(3)], None)
    assert len(lost) == 0
