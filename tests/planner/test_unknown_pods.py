"""Pods that cannot be read: they exist, and nothing else is known of them."""

from msgspec.structs import replace

from tests.planner.builders import HERE, NOW, begun, created, deleted, job, pod, workers
from tfyard.model import Observed, Pod, RoleMemory, RoleStatus
from tfyard.planner import decide

WHY = "status.startTime: Invalid RFC3339 encoded datetime"


def unknown(name: str, **fields: object) -> Pod:
    return pod(name, "Unknown", unreadable=WHY, **fields)


def test_it_is_neither_replaced_nor_deleted_nor_counted() -> None:
    pods = (unknown("worker-0"), pod("worker-1"))
    decision = decide(job(workers(2)), Observed(pods=pods), HERE, NOW)
    assert (created(decision), deleted(decision)) == ([], [])
    counts = decision.status.replica_statuses["Worker"]
    assert (counts.active, counts.failed, counts.succeeded) == (1, 0, 0)


def test_it_is_not_given_up_while_it_is_being_deleted() -> None:
    """Whether its program had ended before is not known."""
    decision = decide(job(workers(1)), Observed(pods=(unknown("worker-0", deleting=NOW),)), HERE, NOW)
    assert (created(decision), deleted(decision), decision.status.tasks) == ([], [], {})


def test_an_attempt_that_was_given_up_before_is_still_deleted() -> None:
    status = replace(begun(job(workers(2))), tasks={"Worker": RoleMemory(attempts={"0": 1})})
    decision = decide(job(workers(2)), Observed(status=status, pods=(unknown("worker-0"),)), HERE, NOW)
    assert deleted(decision) == ["mnist-worker-0"]


def test_its_restarts_are_neither_lost_nor_counted_twice() -> None:
    wanted = job(workers(2, "OnFailure"), backoff_limit=3)
    restarted = pod("worker-0", restarts=2, excused=("tensorflow/1",))
    before = decide(wanted, Observed(pods=(restarted, pod("worker-1"))), HERE, NOW).status
    assert before.restarts == 1
    hidden = decide(
        wanted, Observed(status=before, pods=(unknown("worker-0"), pod("worker-1"))), HERE, NOW
    ).status
    assert (hidden.restarts, hidden.tasks) == (before.restarts, before.tasks)
    again = decide(wanted, Observed(status=hidden, pods=(restarted, pod("worker-1"))), HERE, NOW).status
    assert (again.restarts, again.tasks) == (before.restarts, before.tasks)
    gone = decide(wanted, Observed(status=hidden, pods=(pod("worker-1"),)), HERE, NOW).status
    assert gone.restarts == before.restarts


def test_a_suspended_job_remembers_the_restarts_of_a_pod_that_cannot_be_read() -> None:
    shown = {"Worker": RoleStatus(restarts=2, ready="1/2")}
    status = replace(begun(job(workers(2))), replica_statuses=shown)
    pods = (unknown("worker-0"), pod("worker-1"))
    decision = decide(
        job(workers(2, "OnFailure"), suspend=True), Observed(status=status, pods=pods), HERE, NOW
    )
    assert sorted(deleted(decision)) == ["mnist-worker-0", "mnist-worker-1"]
    assert decision.status.tasks["Worker"].retries == 2
