"""What a pod tells of the attempts at its task, and a TFJob of how it was given."""

from datetime import UTC, datetime

import pytest

from tfyard.overview.objects import (
    Condition,
    ContainerStatus,
    Meta,
    Pod,
    PodStatus,
    Running,
    State,
    Terminated,
    Waiting,
)
from tfyard.remote.pod_starts import endings
from tfyard.remote.views import LAST_APPLIED, attempts_of, given

AT = datetime(2026, 1, 31, tzinfo=UTC)
ENDED = State(terminated=Terminated(exit_code=1, started_at=AT, finished_at=AT))


@pytest.mark.parametrize(
    ("count", "state", "restarts"),
    [
        (0, State(running=Running(AT)), [0]),
        (0, State(waiting=Waiting("CrashLoopBackOff")), [0, 1]),
        (1, State(running=Running(AT)), [0, 1]),
        (1, State(waiting=Waiting("CrashLoopBackOff")), [1, 2]),
    ],
)
def test_a_restart_is_counted_when_it_begins(count: int, state: State, restarts: list[int]) -> None:
    last = ENDED if len(restarts) > 1 else State()
    status = PodStatus(
        container_statuses=(
            ContainerStatus(name="tensorflow", restart_count=count, state=state, last_state=last),
        )
    )
    found = attempts_of(Pod(Meta(name="job-worker-0", creation_timestamp=AT), status=status))
    assert [each.restart for each in found] == restarts


def test_who_ended_the_pod_is_told_rather_than_how_its_program_took_it() -> None:
    said = Condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
    program = ContainerStatus(name="tensorflow", restart_count=1, state=ENDED, last_state=ENDED)
    drained = Pod(
        Meta(name="job-worker-0"), status=PodStatus(container_statuses=(program,), conditions=(said,))
    )
    for before, last in (attempts_of(drained), endings(drained)):
        assert (last.reason, last.message, last.exit_code) == (said.reason, said.message, 1)
        assert (before.reason, before.message) == ("", "")


def test_a_pod_that_its_node_did_not_admit_has_failed() -> None:
    refused = PodStatus(
        phase="Failed", reason="OutOfcpu", message="Pod was rejected: Node didn't have enough"
    )
    (found,) = attempts_of(Pod(Meta(name="job-worker-0"), status=refused))
    assert (found.state, found.reason, found.message) == ("Failed", "OutOfcpu", refused.message)


def test_a_note_of_kubectl_that_was_edited_is_not_taken_for_what_was_given() -> None:
    assert given({"metadata": {"annotations": {LAST_APPLIED: "{"}}}) is None
