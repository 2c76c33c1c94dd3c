"""Conditions, counts and what else is shown of a job."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import Condition, DeleteJob, Obstacle, RoleStatus, Status
from tfyard.planner import conditions

from .builders import (
    NOW,
    at,
    begun,
    chief,
    evaluator,
    job,
    look,
    pod,
    pods,
    servers,
    shown,
    told,
    workers,
)
from .world import World

Conditions = tuple[Condition, ...]


def put(found: Conditions, type: str, reason: str, now: datetime = NOW, holds: bool = True) -> Conditions:
    return conditions.put(found, type, reason, f"{type} because {reason}", now, holds=holds)


CREATED = put((), "Created", "TFJobCreated")
RUNNING = put(CREATED, "Running", "TFJobRunning")


def test_a_new_condition_goes_to_the_end_with_both_times() -> None:
    assert RUNNING[1] == Condition(
        "Running", "True", "TFJobRunning", "Running because TFJobRunning", NOW, NOW
    )


def test_the_same_state_for_the_same_reason_changes_nothing_not_even_the_message() -> None:
    again = conditions.put(RUNNING, "Running", "TFJobRunning", "another message", at(9))
    assert again is RUNNING


def test_the_same_state_for_another_reason_keeps_the_time_of_transition() -> None:
    changed = put(RUNNING, "Running", "Other", at(9))[-1]
    assert (changed.last_update_time, changed.last_transition_time) == (at(9), NOW)


def test_a_state_that_flips_is_a_transition() -> None:
    changed = put(RUNNING, "Running", "TFJobSuspended", at(9), holds=False)[-1]
    assert (changed.status, changed.last_transition_time) == ("False", at(9))


def test_a_changed_condition_moves_to_the_end() -> None:
    found = put(put(RUNNING, "Suspended", "TFJobSuspended"), "Running", "TFJobSuspended", holds=False)
    assert [c.type for c in found] == ["Created", "Suspended", "Running"]


def test_restarting_removes_running_and_running_removes_restarting() -> None:
    restarting = put(RUNNING, "Restarting", "TFJobRestarting")
    assert [c.type for c in restarting] == ["Created", "Restarting"]
    assert [c.type for c in put(restarting, "Running", "TFJobRunning")] == ["Created", "Running"]


def test_running_that_does_not_hold_removes_nothing() -> None:
    restarting = put(CREATED, "Restarting", "TFJobRestarting")
    found = put(restarting, "Running", "TFJobSuspended", holds=False)
    assert [c.type for c in found] == ["Created", "Restarting", "Running"]


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_an_end_turns_running_off_in_place_and_leaves_the_rest_of_it(end: str) -> None:
    found = put(RUNNING, end, f"TFJob{end}", at(9))
    assert found[:2] == (RUNNING[0], replace(RUNNING[1], status="False"))
    assert [c.type for c in found] == ["Created", "Running", end]


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_a_finished_job_is_not_restarting(end: str) -> None:
    found = put(put(CREATED, "Restarting", "TFJobRestarting"), end, f"TFJob{end}")
    assert [(c.type, c.status) for c in found[1:]] == [("Restarting", "False"), (end, "True")]


def test_the_phase_is_the_last_condition_that_holds() -> None:
    assert conditions.phase(()) == ""
    assert conditions.phase(RUNNING) == "Running"
    assert conditions.phase(put(RUNNING, "Running", "TFJobSuspended", holds=False)) == "Created"


def test_an_obstacle_is_the_phase_of_a_job_unless_the_job_runs() -> None:
    assert conditions.phase(put(CREATED, "Blocked", "Quota")) == "Blocked"
    assert conditions.phase(put(put(CREATED, "Blocked", "Quota"), "Restarting", "Lost")) == "Blocked"
    assert conditions.phase(put(RUNNING, "Blocked", "Quota")) == "Running"


def test_an_obstacle_is_the_last_condition_until_the_job_ends() -> None:
    blocked = put(CREATED, "Blocked", "Quota")
    running = put(blocked, "Running", "TFJobRunning")
    assert [c.type for c in running] == ["Created", "Running", "Blocked"]
    ended = put(running, "Succeeded", "TFJobSucceeded")
    assert [c.type for c in ended if c.status == "True"] == ["Created", "Succeeded"]
    assert ended[-1].type == "Succeeded"


STORIES = {
    "a job that succeeds": ("Succeeded", {}, "Succeeded=True (TFJobSucceeded)"),
    "a job that fails": ("Failed", {"exit_code": 1}, "Failed=True (TFJobFailed)"),
}


@pytest.mark.parametrize(("phase", "fields", "last"), STORIES.values(), ids=STORIES.keys())
def test_the_conditions_of_a_whole_life_stand_in_upstreams_order(
    phase: str, fields: dict[str, int], last: str
) -> None:
    world = World(job(workers(1)))
    world.settle()
    world.change("mnist-worker-0", phase=phase, **fields)
    world.settle()
    assert shown(world.status) == ["Created=True (TFJobCreated)", "Running=False (TFJobRunning)", last]


MESSAGES = {
    "Created": "TFJob mnist is created.",
    "Running": "TFJob lab/mnist is running.",
    "Succeeded": "TFJob lab/mnist successfully completed.",
}


def test_messages_are_upstreams() -> None:
    world = World(job(workers(1)))
    world.settle()
    world.change("mnist-worker-0", phase="Succeeded", exit_code=0)
    world.settle()
    assert {c.type: c.message for c in world.status.conditions} == MESSAGES


def test_a_finished_status_never_changes_whatever_its_pods_do() -> None:
    asked = job(workers(2))
    done = look(asked, pod("worker-0", "Succeeded"), pod("worker-1"), status=begun(asked)).status
    worse = look(asked, pod("worker-0", "Failed", exit_code=1), status=done, now=at(99))
    assert (worse.status, worse.actions, worse.events) == (done, (), ())


def test_the_counts_of_a_role_are_active_succeeded_failed_and_ready() -> None:
    asked = job(chief(), workers(4), servers(1), evaluator(), dynamic_workers=True)
    seen = [
        pod("chief-0", ready=True),
        pod("worker-0", "Succeeded"),
        pod("worker-1", ready=True, restarts=2),
        pod("worker-2", "Failed", exit_code=1),
        pod("worker-3", "Pending"),
        pod("ps-0"),
    ]
    labels = "training.kubeflow.org/job-name=mnist,training.kubeflow.org/replica-type="
    assert look(asked, *seen, status=begun(asked)).status.replica_statuses == {
        "Chief": RoleStatus(active=1, ready="1/1", selector=f"{labels}chief"),
        "Worker": RoleStatus(
            active=1, succeeded=1, failed=1, restarts=2, ready="2/4", selector=f"{labels}worker"
        ),
        "PS": RoleStatus(active=1, ready="0/1", selector=f"{labels}ps"),
        "Evaluator": RoleStatus(ready="0/1", selector=f"{labels}evaluator"),
    }


def test_a_healthy_job_remembers_nothing_of_its_tasks() -> None:
    asked = job(workers(3))
    assert begun(asked, *pods("worker-0", "worker-1", "worker-2")).tasks == {}


def test_the_start_is_the_first_pass_in_whole_seconds() -> None:
    decision = look(job(workers(1)), now=at(0.75))
    assert decision.status.start_time == NOW
    assert look(job(workers(1)), status=decision.status, now=at(50)).status.start_time == NOW


def test_the_generation_that_was_seen_is_shown() -> None:
    asked = job(workers(1))
    later = replace(asked, generation=7)
    assert look(later, status=begun(asked)).status.observed_generation == 7


QUOTA = Obstacle("FailedCreatePod", "exceeded quota: pods=4")


def test_an_obstacle_is_a_condition_and_one_event() -> None:
    asked = job(workers(1))
    first = look(asked, status=begun(asked), obstacles=(QUOTA,))
    assert shown(first.status)[-1] == "Blocked=True (FailedCreatePod)"
    assert told(first) == [("Warning", "FailedCreatePod", "exceeded quota: pods=4")]
    again = look(asked, status=first.status, obstacles=(QUOTA,), now=at(9))
    assert (again.status, told(again)) == (first.status, [])


def test_another_obstacle_with_the_same_reason_is_reported_again() -> None:
    asked = job(workers(1))
    first = look(asked, status=begun(asked), obstacles=(QUOTA,))
    other = Obstacle("FailedCreatePod", "exceeded quota: cpu=8")
    second = look(asked, status=first.status, obstacles=(other,), now=at(9))
    assert told(second) == [("Warning", "FailedCreatePod", "exceeded quota: cpu=8")]
    condition = second.status.condition("Blocked")
    assert condition == Condition("Blocked", "True", "FailedCreatePod", "exceeded quota: cpu=8", at(9), NOW)


def test_a_job_that_is_no_longer_blocked_has_a_normal_event() -> None:
    asked = job(workers(1))
    blocked = look(asked, status=begun(asked), obstacles=(QUOTA,)).status
    free = look(asked, status=blocked)
    assert shown(free.status)[-1] == "Blocked=False (Unblocked)"
    assert told(free) == [("Normal", "Unblocked", "Nothing blocks the job any more.")]


def test_a_suspended_job_waits_for_nothing() -> None:
    asked = job(workers(1))
    blocked = look(asked, status=begun(asked), obstacles=(QUOTA,)).status
    rests = look(replace(asked, run_policy=replace(asked.run_policy, suspend=True)), status=blocked)
    assert shown(rests.status)[-2:] == ["Blocked=False (Unblocked)", "Suspended=True (TFJobSuspended)"]
    assert rests.status.phase == "Suspended"


def test_created_is_never_missing_though_another_operator_lost_it() -> None:
    asked = job(workers(1))
    inherited = Status(conditions=put((), "Running", "TFJobRunning"), start_time=NOW)
    status = look(asked, pod("worker-0"), status=inherited, now=at(9)).status
    assert shown(status) == ["Created=True (TFJobCreated)", "Running=True (TFJobRunning)"]


def test_the_generation_of_a_finished_job_is_seen_too() -> None:
    """Tools that wait until an edit was seen (the time to live, say) would else wait for ever."""
    asked = job(workers(1))
    done = look(asked, pod("worker-0", "Succeeded"), status=begun(asked)).status
    assert look(replace(asked, generation=2), status=done).status == replace(done, observed_generation=2)


def ended(**fields: Any) -> Status:
    """As upstream's operator leaves a job that failed after a restart: no time, no phase."""
    return Status(
        conditions=(*CREATED, Condition("Failed", "True", "TFJobFailed", "", at(5), at(5))), **fields
    )


def test_an_end_that_another_operator_left_without_its_time_gets_one() -> None:
    asked = job(workers(1), ttl=60)
    decision = look(asked, status=ended(), now=at(35))
    assert decision.status.completion_time == at(5)
    assert decision.wake_after == 30
    assert look(asked, status=decision.status, now=at(65)).actions == (DeleteJob(),)


def test_an_end_whose_very_condition_has_no_time_ended_now() -> None:
    bare = Status(conditions=(Condition("Succeeded", "True"),))
    assert look(job(workers(1)), status=bare, now=at(9)).status.completion_time == at(9)


def test_an_end_that_another_operator_left_shows_its_phase() -> None:
    assert look(job(workers(1)), status=ended(completion_time=NOW)).status.phase == "Failed"


SERVICE = {("Service", "mnist")}


def test_counts_alone_wait_until_they_rest() -> None:
    asked, waits = job(workers(3)), pod("worker-2", "Pending")
    status = look(asked, pod("worker-0"), pod("worker-1", "Pending"), waits, status=begun(asked)).status
    more = look(asked, pod("worker-0"), pod("worker-1"), waits, status=status, children=SERVICE)
    assert more.status != status
    assert more.urgency == "at rest"
    ended = pod("worker-1", "Succeeded", exit_code=0)
    done = look(asked, pod("worker-0"), ended, waits, status=status, children=SERVICE)
    assert done.urgency == "at rest", "the pod itself still says that it is finished"


def test_the_status_is_stored_at_once_while_a_pod_is_being_deleted() -> None:
    asked = job(workers(2))
    status = look(asked, pod("worker-0"), pod("worker-1"), status=begun(asked)).status
    leaving = pod("worker-1", "Succeeded", exit_code=0, deleting=NOW)
    assert look(asked, pod("worker-0"), leaving, status=status, children=SERVICE).urgency == "now"


def test_running_is_stored_soon_and_an_action_does_not_wait() -> None:
    asked, both = job(workers(2)), pods("worker-0", "worker-1")
    begins = look(asked, *both, status=begun(asked), children=SERVICE)
    assert begins.urgency == "soon"
    missing = look(asked, both[0], status=begins.status, children=SERVICE)
    assert missing.urgency == "now", "a pod is to be made"


def test_a_job_that_succeeded_before_it_was_seen_running_has_run() -> None:
    asked, done = job(workers(1)), pod("worker-0", "Succeeded", exit_code=0)
    found = look(asked, done, status=begun(asked), children=SERVICE).status.conditions
    assert [(c.type, c.status) for c in found] == [
        ("Created", "True"), ("Running", "False"), ("Succeeded", "True"),
    ]  # fmt: skip


def test_a_status_that_is_stored_late_says_when_the_job_began_and_ran() -> None:
    asked, began, ran = job(workers(1)), NOW - timedelta(seconds=4), NOW - timedelta(seconds=3)
    (only,) = look(asked, begun=began).status.conditions
    assert (only.type, only.last_transition_time) == ("Created", began)
    done = pod("worker-0", "Succeeded", exit_code=0, run_started=ran)
    status = look(asked, done, begun=began, children=SERVICE).status
    assert status.start_time == began
    times = [(c.type, c.last_transition_time) for c in status.conditions]
    assert times == [("Created", began), ("Running", ran), ("Succeeded", NOW)]
    ahead = pod("worker-0", "Succeeded", exit_code=0, run_started=NOW + timedelta(seconds=9))
    assert look(asked, ahead, begun=began, children=SERVICE).status.conditions[1].last_transition_time == NOW
