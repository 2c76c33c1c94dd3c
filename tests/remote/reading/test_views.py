"""What a pod tells of the attempts at its task."""

from datetime import UTC, datetime

import pytest

from tests.overview.situations import NEVER_BEGUN, ago, ended_in_place, pod, stamp
from tfyard.remote.logs.pod_starts import endings
from tfyard.remote.reading.views import attempts_of
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import (
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatusDetails,
    PodDetails,
    PodStatusDetails,
    State,
    TimedCondition,
)

AT = datetime(2026, 1, 31, tzinfo=UTC)
ENDED = State(terminated=ContainerStateTerminated(exit_code=1, started_at=AT, finished_at=AT))


@pytest.mark.parametrize(
    ("count", "state", "restarts"),
    [
        (0, State(running=ContainerStateRunning(AT)), [0]),
        (0, State(waiting=ContainerStateWaiting("CrashLoopBackOff")), [0, 1]),
        (1, State(running=ContainerStateRunning(AT)), [0, 1]),
        (1, State(waiting=ContainerStateWaiting("CrashLoopBackOff")), [1, 2]),
    ],
)
def test_a_restart_is_counted_when_it_begins(count: int, state: State, restarts: list[int]) -> None:
    last = ENDED if len(restarts) > 1 else State()
    status = PodStatusDetails(
        container_statuses=(
            ContainerStatusDetails(name="tensorflow", restart_count=count, state=state, last_state=last),
        )
    )
    found = attempts_of(PodDetails(ObjectMeta(name="job-worker-0", creation_timestamp=AT), status=status))
    assert [each.restart for each in found] == restarts


def test_a_program_that_could_not_be_started_has_not_run_since_1970() -> None:
    never = ContainerStateTerminated(
        128, "StartError", started_at=datetime(1970, 1, 1, tzinfo=UTC), finished_at=AT
    )
    program = ContainerStatusDetails(name="tensorflow", state=State(terminated=never))
    status = PodStatusDetails(container_statuses=(program,))
    (found,) = attempts_of(PodDetails(ObjectMeta(name="job-worker-0"), status=status))
    assert (found.started, found.finished) == (None, AT)


def test_the_reason_of_a_pods_end_is_shown_rather_than_the_exit_code_of_its_program() -> None:
    said = TimedCondition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
    program = ContainerStatusDetails(name="tensorflow", restart_count=1, state=ENDED, last_state=ENDED)
    drained = PodDetails(
        ObjectMeta(name="job-worker-0"),
        status=PodStatusDetails(container_statuses=(program,), conditions=(said,)),
    )
    for before, last in (attempts_of(drained), endings(drained)):
        assert (last.reason, last.message, last.exit_code) == (said.reason, said.message, 1)
        assert (before.reason, before.message) == ("", "")


def test_a_pod_that_its_node_did_not_admit_has_failed() -> None:
    refused = PodStatusDetails(
        phase="Failed", reason="OutOfcpu", message="Pod was rejected: Node didn't have enough"
    )
    (found,) = attempts_of(PodDetails(ObjectMeta(name="job-worker-0"), status=refused))
    assert (found.state, found.reason, found.message) == ("Failed", "OutOfcpu", refused.message)


def test_the_last_run_of_a_pod_that_was_ended_in_its_back_off_is_shown() -> None:
    last = {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": stamp(ago(minutes=2)),
        "finishedAt": stamp(ago(minutes=1)),
    }
    status = ended_in_place(NEVER_BEGUN, restartCount=3, lastState={"terminated": last})
    (found,) = attempts_of(pod(status=status, activeDeadlineSeconds=1))
    assert (found.restart, found.state, found.exit_code, found.reason) == (3, "Failed", 1, "Error")
    assert (found.started, found.finished, found.message) == (ago(minutes=2), ago(minutes=1), "")
    (ending,) = endings(pod(status=status, activeDeadlineSeconds=1))
    assert (ending.restart, ending.exit_code, ending.reason) == (3, 1, "Error")


def test_a_task_whose_sidecars_were_ended_has_succeeded() -> None:
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": stamp(ago(minutes=1))}}
    proxy = {"name": "istio-proxy", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    (found,) = attempts_of(pod(status=ended_in_place(done, proxy), activeDeadlineSeconds=1))
    assert (found.state, found.exit_code, found.reason) == ("Succeeded", 0, "Completed")


def test_a_pod_that_met_the_deadline_of_its_template_has_failed_by_that() -> None:
    killed = {"terminated": {"exitCode": 143, "reason": "Error", "finishedAt": stamp(ago(minutes=1))}}
    (found,) = attempts_of(pod(status=ended_in_place(killed), activeDeadlineSeconds=600))
    assert (found.state, found.exit_code, found.reason) == ("Failed", 143, "DeadlineExceeded")
