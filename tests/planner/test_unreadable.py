"""Jobs whose spec cannot be read: never started, or edited while they run."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import Decision, DeleteJob, Job, Pod, Status

from .builders import (
    at,
    attempt,
    begun,
    created,
    deleted,
    job,
    look,
    pod,
    pods,
    servers,
    shown,
    told,
    workers,
)

PROBLEM = "spec.tfReplicaSpecs.Worker.replicas: TF_CONFIG would have 540,256 bytes"
TEXT = f"TFJob lab/mnist is invalid: {PROBLEM}"
RUNNING = pods("worker-0", "worker-1")
CHILDREN = frozenset({("Service", "mnist")})


def broken(**policy: Any) -> Job:
    """What is left of a job that was edited into something unreadable: of its roles, nothing."""
    return replace(job(generation=2, **policy), problems=(PROBLEM,))


def running(*seen: Pod, **policy: Any) -> Status:
    asked = job(workers(2, "OnFailure"), servers(1), **policy)
    return begun(asked, *(seen or (*RUNNING, pod("ps-0"))))


def edit(*seen: Pod, status: Status | None = None, now: float = 5, **policy: Any) -> Decision:
    status = running(**policy) if status is None else status
    return look(broken(**policy), *seen, status=status, now=at(now), children=CHILDREN)


def test_a_running_job_is_blocked_and_its_pods_and_services_stay() -> None:
    decision = edit(*RUNNING, pod("ps-0"))
    assert decision.actions == ()
    assert shown(decision.status)[-1] == "Blocked=True (InvalidSpec)"
    assert (decision.status.phase, decision.status.conditions[-1].message) == ("Running", TEXT)
    assert told(decision) == [("Warning", "InvalidSpec", TEXT)]
    assert decision.status.observed_generation == 2
    again = look(broken(), *RUNNING, pod("ps-0"), status=decision.status, now=at(60), children=CHILDREN)
    assert (again.status, again.events) == (decision.status, ()), "said once"


def test_the_next_good_edit_is_taken_and_the_job_goes_on() -> None:
    halted = edit(*RUNNING, pod("ps-0")).status
    decision = look(
        job(workers(3, "OnFailure"), servers(1), generation=3),
        *RUNNING,
        pod("ps-0"),
        status=halted,
        now=at(9),
    )
    assert created(decision) == ["mnist-worker-2"]
    assert shown(decision.status)[-1] == "Blocked=False (Unblocked)"


def test_what_its_tasks_did_meanwhile_is_remembered() -> None:
    halted = edit(RUNNING[0], pod("worker-1", "Succeeded"), pod("ps-0", restarts=2)).status
    assert halted.tasks["Worker"].finished == "1"
    assert halted.replica_statuses["Worker"].ready == "1/2"
    assert halted.replica_statuses["PS"].restarts == 2
    later = edit(RUNNING[0], pod("ps-0", restarts=2), status=halted).status
    good = look(job(workers(2, "OnFailure"), servers(1)), RUNNING[0], pod("ps-0"), status=later)
    assert created(good) == [], "a finished task is not run again, although its pod is gone"


def test_pods_that_fail_or_are_deleted_wait_for_the_edit() -> None:
    gone = pod("worker-0", deleting=at(30))
    first = edit(gone, pod("worker-1", "Failed", exit_code=1), pod("ps-0"))
    assert (first.actions, first.status.is_finished) == ((), False)
    exited = replace(gone, phase="Succeeded")
    later = edit(exited, pod("worker-1", "Failed", exit_code=1), pod("ps-0"), status=first.status).status
    assert "Worker" not in later.tasks or later.tasks["Worker"].finished == ""
    good = look(
        job(workers(2, "OnFailure"), servers(1)),
        pod("worker-1", "Failed", exit_code=1),
        pod("ps-0"),
        status=later,
        now=at(40),
    )
    assert (attempt(good, "worker-0"), deleted(good)) == ("1", ["mnist-worker-1"])


def test_the_deadline_is_honoured() -> None:
    assert edit(*RUNNING, deadline=60).wake_after == 56
    decision = edit(*RUNNING, now=61, deadline=60)
    assert decision.status.failure is not None
    assert decision.status.failure.cause == "DeadlineExceeded"
    assert deleted(decision) == ["mnist-worker-0", "mnist-worker-1"]


def test_restarts_in_place_count_against_the_limit() -> None:
    decision = edit(pod("worker-0", restarts=3), RUNNING[1], backoff_limit=2, clean="All")
    assert decision.status.failure is not None
    assert decision.status.failure.cause == "BackoffLimitExceeded"
    assert deleted(decision) == ["mnist-worker-0", "mnist-worker-1"]
    assert deleted(decision, "Service") == ["mnist"]


def test_it_can_be_suspended_and_still_says_what_is_wrong() -> None:
    decision = edit(*RUNNING, pod("ps-0"), suspend=True, status=running())
    assert deleted(decision) == ["mnist-worker-0", "mnist-worker-1", "mnist-ps-0"]
    assert decision.status.phase == "Suspended"
    assert shown(decision.status)[-1] == "Blocked=True (InvalidSpec)"
    again = edit(suspend=True, status=decision.status, now=50)
    assert again.status.conditions == decision.status.conditions
    resumed = edit(status=again.status, now=60)
    assert (created(resumed), resumed.status.phase) == ([], "Blocked")
    good = look(job(workers(2), servers(1)), status=resumed.status, now=at(70))
    assert len(created(good)) == 3


@pytest.mark.parametrize(("ttl", "action"), [(10, (DeleteJob(),)), (None, ())])
def test_a_finished_job_honours_its_ttl(ttl: int | None, action: tuple[object, ...]) -> None:
    asked = job(workers(1))
    done = look(asked, pod("worker-0", "Succeeded"), status=begun(asked)).status
    decision = look(broken(ttl=ttl), pod("worker-0", "Succeeded"), status=done, now=at(10))
    assert decision.actions == action
    assert decision.status.has("Succeeded")


def test_a_job_that_was_never_readable_fails_and_honours_its_ttl() -> None:
    decision = look(broken(ttl=20))
    assert shown(decision.status) == ["Created=True (TFJobCreated)", "Failed=True (TFJobFailed)"]
    assert decision.status.failure is not None
    assert (decision.status.failure.cause, decision.status.failure.message) == ("InvalidSpec", TEXT)
    assert (told(decision), decision.wake_after) == ([("Warning", "TFJobFailed", TEXT)], 20)
    assert look(broken(ttl=20), status=decision.status, now=at(20)).actions == (DeleteJob(),)
    assert look(broken(ttl=0)).actions == (DeleteJob(),)


def test_a_job_of_another_controller_is_left_alone() -> None:
    assert look(broken(managed_by="example.com/other")) == Decision(status=Status())


def test_invented_labels_and_counts_cost_no_time() -> None:
    stranger = pod("worker-0", task=pod("worker-999999999").task)
    decision = edit(stranger)
    assert decision.actions == ()
