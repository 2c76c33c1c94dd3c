"""Suspend and resume, slowly and in quick succession."""

from msgspec.structs import replace

from tfyard.model import RoleStatus, RunPolicy

from .builders import (
    at,
    begun,
    chief,
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
from .world import World

RESTING = RunPolicy(suspend=True)
AWAKE = RunPolicy()


def test_a_job_that_is_created_suspended_makes_nothing_and_has_no_start() -> None:
    decision = look(job(workers(2), suspend=True))
    assert decision.actions == ()
    assert shown(decision.status) == ["Created=True (TFJobCreated)", "Suspended=True (TFJobSuspended)"]
    assert decision.status.start_time is None
    assert decision.status.replica_statuses["Worker"].ready == "0/2", "a table would show nothing"
    assert decision.status.phase == "Suspended"
    assert decision.status.observed_generation == 1


def test_suspend_deletes_every_pod_and_service_whatever_the_clean_up_policy() -> None:
    awake = job(chief(), workers(2), clean="None")
    seen = [pod("chief-0"), pod("worker-0", "Pending"), pod("worker-1", "Succeeded")]
    asked = job(chief(), workers(2), clean="None", suspend=True)
    services = frozenset({("Service", "mnist"), ("ConfigMap", "mnist-cluster-1")})
    decision = look(asked, *seen, status=begun(awake, *seen), children=services)
    assert deleted(decision) == ["mnist-chief-0", "mnist-worker-0", "mnist-worker-1"]
    assert deleted(decision, "Service") == ["mnist"]
    assert deleted(decision, "ConfigMap") == ["mnist-cluster-1"]
    assert {r.active for r in decision.status.replica_statuses.values()} == {0}


def test_suspend_turns_running_off_and_resume_turns_it_on_again_in_upstreams_order() -> None:
    world = World(job(workers(1)))
    world.settle()
    world.job = replace(world.job, run_policy=RESTING)
    world.settle()
    assert shown(world.status) == [
        "Created=True (TFJobCreated)",
        "Running=False (TFJobSuspended)",
        "Suspended=True (TFJobSuspended)",
    ]
    world.job = replace(world.job, run_policy=AWAKE)
    world.settle()
    assert shown(world.status) == [
        "Created=True (TFJobCreated)",
        "Suspended=False (TFJobResumed)",
        "Running=True (TFJobRunning)",
    ]


def test_a_suspended_job_says_so_once() -> None:
    asked = job(workers(1), suspend=True)
    first = look(asked)
    assert told(first) == [("Normal", "TFJobSuspended", "TFJob mnist is suspended.")]
    assert told(look(asked, status=first.status)) == []


def test_a_resumed_job_says_so_and_starts_its_clock_anew() -> None:
    asked = job(workers(1), deadline=100)
    resting = look(job(workers(1), suspend=True), status=begun(asked)).status
    assert resting.start_time == at(0), "kept until the resume"
    resumed = look(asked, status=resting, now=at(500))
    assert told(resumed) == [("Normal", "TFJobResumed", "TFJob mnist is resumed.")]
    assert resumed.status.start_time == at(500)
    assert resumed.wake_after == 101
    assert not resumed.status.is_finished


def test_a_deadline_does_not_pass_while_the_job_is_suspended() -> None:
    resting = look(job(workers(1), suspend=True, deadline=10), status=begun(job(workers(1)))).status
    decision = look(job(workers(1), suspend=True, deadline=10), status=resting, now=at(999))
    assert not decision.status.is_finished
    assert decision.wake_after is None


def test_what_finished_before_the_suspension_stays_finished() -> None:
    awake, asked = job(chief(), workers(2)), job(chief(), workers(2), suspend=True)
    seen = [pod("chief-0"), pod("worker-0", "Succeeded"), pod("worker-1")]
    resting = look(asked, *seen, status=begun(awake)).status
    resumed = look(awake, status=resting)
    assert created(resumed) == ["mnist-chief-0", "mnist-worker-1"]


def test_resume_waits_until_the_old_pods_have_gone_and_no_task_fails() -> None:
    world = World(job(workers(2), servers(1)))
    world.settle()
    world.job = replace(world.job, run_policy=RESTING)
    world.step()
    world.job = replace(world.job, run_policy=AWAKE)
    decision = world.step()
    assert created(decision) == []
    assert not decision.status.is_finished
    world.change("mnist-worker-0", phase="Failed", exit_code=143)
    assert not world.step().status.is_finished
    world.settle()
    assert world.status.phase == "Running"
    assert {p.deleting for p in world.pods.values()} == {None}
    assert sum(r.restarts for r in world.status.replica_statuses.values()) == 0


def test_suspending_again_while_the_resume_is_under_way_leaves_nothing_behind() -> None:
    world = World(job(workers(3)))
    for policy in (AWAKE, RESTING, AWAKE, RESTING):
        world.job = replace(world.job, run_policy=policy)
        world.step()
    world.settle()
    assert (world.pods, world.children) == ({}, set())


def test_restarts_in_place_count_on_after_a_suspension() -> None:
    world = World(job(workers(1, "OnFailure"), backoff_limit=3))
    world.settle()
    world.change("mnist-worker-0", restarts=2)
    for policy in (RunPolicy(suspend=True, backoff_limit=3), RunPolicy(backoff_limit=3)):
        world.job = replace(world.job, run_policy=policy)
        world.settle()
    assert world.status.replica_statuses["Worker"].restarts == 2


def test_a_finished_job_is_not_suspended() -> None:
    done = look(job(workers(1)), pod("worker-0", "Succeeded"), status=begun(job(workers(1)))).status
    decision = look(job(workers(1), suspend=True), pod("worker-0", "Succeeded"), status=done)
    assert (shown(decision.status), decision.actions) == (shown(done), ())


def test_the_time_to_live_does_not_run_while_a_job_is_suspended() -> None:
    asked = job(workers(1), suspend=True, ttl=0)
    assert look(asked, status=look(asked).status, now=at(10**6)).actions == ()


def test_a_suspended_pod_on_a_dead_node_is_removed_by_force() -> None:
    asked = job(workers(1), suspend=True)
    status = look(asked, status=begun(job(workers(1)))).status
    lost = pod("worker-0", deleting=at(30))
    waiting = look(asked, lost, status=status)
    assert (deleted(waiting), waiting.wake_after) == ([], 60.0)
    assert deleted(look(asked, lost, status=waiting.status, now=at(61))) == ["mnist-worker-0"]


def test_tensorboard_stays_through_a_suspension() -> None:
    asked = job(workers(1), suspend=True)
    board = frozenset({("Deployment", "mnist-tensorboard"), ("Service", "mnist-tensorboard")})
    assert look(asked, status=begun(job(workers(1))), children=board).actions == ()


def test_a_suspended_job_shows_its_roles_at_rest() -> None:
    awake = job(workers(2))
    seen = pods("worker-0", "worker-1")
    status = look(job(workers(2), suspend=True), *seen, status=begun(awake, *seen)).status
    selector = "training.kubeflow.org/job-name=mnist,training.kubeflow.org/replica-type=worker"
    assert status.replica_statuses == {"Worker": RoleStatus(ready="0/2", selector=selector)}


def test_a_suspended_job_is_not_restarting() -> None:
    awake = job(workers(1, "OnFailure"))
    restarting = look(awake, pod("worker-0", "Failed"), status=begun(awake, pod("worker-0"))).status
    status = look(job(workers(1, "OnFailure"), suspend=True), status=restarting).status
    assert shown(status) == [
        "Created=True (TFJobCreated)",
        "Restarting=False (TFJobSuspended)",
        "Suspended=True (TFJobSuspended)",
    ]


def test_a_failure_seen_first_when_the_job_is_suspended_still_counts_as_a_restart() -> None:
    world = World(job(workers(1, "OnFailure"), backoff_limit=3))
    world.settle()
    world.change("mnist-worker-0", phase="Failed", exit_code=1)
    for policy in (RunPolicy(suspend=True, backoff_limit=3), RunPolicy(backoff_limit=3)):
        world.job = replace(world.job, run_policy=policy)
        world.settle()
    assert world.status.replica_statuses["Worker"].restarts == 1
    assert world.status.replica_statuses["Worker"].failed == 0


def test_a_pod_that_ends_well_because_of_the_suspension_has_not_finished() -> None:
    world = World(job(workers(1)))
    world.settle()
    world.job = replace(world.job, run_policy=RESTING)
    world.step()
    world.change("mnist-worker-0", phase="Succeeded")
    world.step()
    world.settle()
    world.job = replace(world.job, run_policy=AWAKE)
    world.settle()
    assert world.status.phase == "Running"


def test_a_pod_that_ends_well_after_a_quick_resume_has_not_finished() -> None:
    world = World(job(workers(1)))
    world.settle()
    for policy in (RESTING, AWAKE):
        world.job = replace(world.job, run_policy=policy)
        world.step()
    world.change("mnist-worker-0", phase="Succeeded")
    world.step()
    world.settle()
    assert world.status.phase == "Running"


def test_a_quick_resume_does_not_say_that_pods_were_taken_away() -> None:
    world = World(job(workers(1)))
    world.settle()
    events = []
    for policy in (RESTING, AWAKE):
        world.job = replace(world.job, run_policy=policy)
        events += [event.reason for event in world.step().events]
    events += [event.reason for event in world.step().events]
    assert events == ["TFJobSuspended", "TFJobResumed"]
    assert world.status.phase == "Created"


def test_a_failure_that_the_job_survives_is_no_restart_when_it_is_suspended() -> None:
    elastic = {"dynamic_workers": True, "backoff_limit": 0}
    world = World(job(chief(), workers(1), **elastic))
    world.settle()
    world.change("mnist-worker-0", phase="Failed", exit_code=1)
    world.settle()
    for suspend in (True, False):
        world.job = job(chief(), workers(1), **elastic, suspend=suspend)
        world.settle()
    assert world.status.phase == "Running"


def test_a_failure_seen_first_at_a_suspension_is_counted_once_with_its_restarts_in_place() -> None:
    awake, asked = job(workers(1, "OnFailure")), job(workers(1, "OnFailure"), suspend=True)
    failed = pod("worker-0", "Failed", exit_code=1, restarts=2)
    first = look(asked, failed, status=begun(awake, pod("worker-0", restarts=2)))
    again = look(asked, failed, status=first.status)
    counts = [
        (d.status.replica_statuses["Worker"].restarts, d.status.replica_statuses["Worker"].failed)
        for d in (first, again)
    ]
    assert counts == [(3, 0), (3, 0)]


KEEPING = RunPolicy(suspend=True, keeps_pods=True, backoff_limit=0)


def test_a_suspension_that_keeps_pods_ends_them_in_place_and_the_resume_replaces_them() -> None:
    world = World(job(chief(), workers(2), servers(1)))
    world.settle()
    world.change("mnist-worker-0", phase="Succeeded")
    world.change("mnist-worker-1", phase="Pending")
    world.job = replace(world.job, run_policy=KEEPING)
    world.step()
    world.settle()
    phases = {name: each.phase for name, each in world.pods.items()}
    assert phases == {"mnist-chief-0": "Failed", "mnist-worker-0": "Succeeded", "mnist-ps-0": "Failed"}
    assert world.status.phase == "Suspended"
    world.job = replace(world.job, run_policy=replace(KEEPING, suspend=False))
    world.settle()
    assert world.status.phase == "Running"
    assert world.status.replica_statuses["Worker"].succeeded == 1, "it had ended by itself"
    assert {name: each.attempt for name, each in world.pods.items() if each.phase == "Running"} == {
        "mnist-chief-0": 1,
        "mnist-worker-1": 0,
        "mnist-ps-0": 1,
    }
    assert sum(r.restarts for r in world.status.replica_statuses.values()) == 0
    assert world.status.endings == ()


def test_a_program_that_ends_well_when_its_pod_is_ended_in_place_has_not_finished() -> None:
    world = World(job(workers(1)))
    world.settle()
    world.job = replace(world.job, run_policy=KEEPING)
    world.step()
    world.change("mnist-worker-0", phase="Succeeded")
    world.settle()
    world.job = replace(world.job, run_policy=AWAKE)
    world.settle()
    assert world.status.phase == "Running"
