"""What is read of a pod, whatever somebody wrote into it."""

import pytest

from tfyard.backends.kubernetes.views import (
    ContainerStatus,
    Meta,
    PodStatus,
    PodView,
    State,
    Waiting,
    to_pod,
)
from tfyard.model.names import ATTEMPT, REPLICA_INDEX, REPLICA_TYPE


@pytest.mark.parametrize(
    ("text", "attempt"), [("3", 3), ("", 0), ("-1", 0), ("three", 0), ("²", 0), ("9" * 5000, 0)]
)
def test_an_attempt_that_is_no_number_is_the_first(text: str, attempt: int) -> None:
    labels = {REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
    pod = to_pod(PodView(Meta("train-worker-0", labels=labels, annotations={ATTEMPT: text})))
    assert pod is not None
    assert pod.attempt == attempt


@pytest.mark.parametrize(
    ("container", "reason", "is_due"),
    [
        ("tensorflow", "CrashLoopBackOff", True),
        ("tensorflow", "ContainerCreating", False),
        ("proxy", "CrashLoopBackOff", False),
    ],
)
def test_the_restart_of_a_program_in_a_crash_loop_is_due(container: str, reason: str, is_due: bool) -> None:
    states = {"tensorflow": State(), "proxy": State(), container: State(waiting=Waiting(reason))}
    found = tuple(ContainerStatus(name=name, state=state) for name, state in states.items())
    labels = {REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
    pod = to_pod(PodView(Meta("train-worker-0", labels=labels), status=PodStatus(container_statuses=found)))
    assert pod is not None
    assert pod.restart_due == is_due
