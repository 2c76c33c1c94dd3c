"""Which jobs are ignored, how a job is scaled, and which actions may precede the status."""

import pytest
from msgspec.structs import replace

from tfyard.model import Decision, Status
from tfyard.planner import Site

from .builders import (
    at,
    attempt,
    begun,
    chief,
    created,
    deleted,
    env,
    job,
    look,
    pod,
    pods,
    servers,
    workers,
)
from .world import World

MANAGERS = {
    "a job without a manager is ours": (None, True),
    "a job for upstream's operator is ours": ("kubeflow.org/training-operator", True),
    "an empty manager is none": ("", True),
    "a job of MultiKueue's is not ours": ("kueue.x-k8s.io/multikueue", False),
    "a job of anybody else's is not ours": ("example.com/other", False),
}


@pytest.mark.parametrize(("manager", "ours"), MANAGERS.values(), ids=MANAGERS.keys())
def test_jobs_that_another_controller_manages_are_ignored(manager: str | None, ours: bool) -> None:
    decision = look(job(workers(1), managed_by=manager))
    assert bool(decision.actions) == ours
    assert ours or decision == Decision(status=Status())


def test_a_job_that_is_being_deleted_is_left_to_its_owner_references() -> None:
    asked = job(workers(2), ttl=0)
    status = begun(asked, *pods("worker-0", "worker-1"))
    assert look(asked, pod("worker-0", "Failed"), status=status, deleting=True) == Decision(status=status)


def test_a_job_that_begins_may_act_before_that_is_written() -> None:
    assert look(job(workers(2))).urgency == "later"


def test_later_passes_remember_before_they_act() -> None:
    asked = job(workers(2))
    assert look(asked, status=begun(asked)).urgency == "now"


def test_a_first_pass_that_deletes_remembers_before_it_acts() -> None:
    assert look(job(workers(1)), pod("worker-0"), pod("worker-1")).urgency == "now"


def test_a_first_pass_that_ends_the_job_remembers_before_it_acts() -> None:
    assert look(job(workers(1), clean="All"), pod("worker-0", "Succeeded")).urgency == "now"


def test_a_suspended_first_pass_remembers_before_it_acts() -> None:
    assert look(job(workers(1), suspend=True), pod("worker-0")).urgency == "now"


def test_repeating_a_first_pass_whose_status_was_lost_creates_nothing_twice() -> None:
    world = World(job(chief(), workers(2)))
    world.apply(world.decide().actions)
    again = world.decide()
    assert again.actions == ()
    assert again.status == look(world.job).status


@pytest.mark.parametrize("roles", [(workers(2), servers(0)), (chief(replicas=0), workers(2))])
def test_a_role_of_0_replicas_has_no_pods(roles: tuple[object, ...]) -> None:
    decision = look(job(*roles))  # type: ignore[arg-type]
    assert created(decision) == ["mnist-worker-0", "mnist-worker-1"]


def test_a_role_that_is_scaled_to_0_loses_its_pods_and_the_world_comes_to_rest() -> None:
    world = World(job(chief(), servers(2)))
    world.settle()
    world.job = job(chief(), servers(0))
    world.settle()
    assert list(world.pods) == ["mnist-chief-0"]
    assert not world.status.is_finished


def test_scaling_up_makes_the_missing_tasks_only() -> None:
    status = begun(job(workers(2)), *pods("worker-0", "worker-1"))
    decision = look(job(workers(4)), *pods("worker-0", "worker-1"), status=status)
    assert created(decision) == ["mnist-worker-2", "mnist-worker-3"]
    assert "mnist-worker-3.mnist.lab.svc" in env(decision, "worker-2")["TF_CONFIG"]


def test_scaling_down_deletes_the_last_tasks_and_no_task_fails() -> None:
    status = begun(job(workers(3)), *pods("worker-0", "worker-1", "worker-2"))
    seen = [*pods("worker-0", "worker-1"), pod("worker-2", "Failed", exit_code=1)]
    decision = look(job(workers(2)), *seen, status=status)
    assert deleted(decision) == ["mnist-worker-2"]
    assert decision.status.phase == "Running"


def test_pods_that_leave_after_a_scale_down_are_no_failure() -> None:
    status = begun(job(workers(2)), *pods("worker-0", "worker-1"))
    leaving = pod("worker-1", "Failed", exit_code=143, deleting=at(30))
    decision = look(job(workers(1)), pod("worker-0"), leaving, status=status)
    assert (decision.status.phase, deleted(decision)) == ("Running", [])


def test_scaling_down_forgets_what_the_lost_tasks_had_done() -> None:
    asked = job(chief(), workers(2))
    done = look(asked, pod("chief-0"), pod("worker-1", "Succeeded"), status=begun(asked)).status
    assert done.tasks["Worker"].finished == "1"
    small = look(job(chief(), workers(1)), pod("chief-0"), status=done).status
    grown = look(asked, pod("chief-0"), pod("worker-0"), status=small)
    assert created(grown) == ["mnist-worker-1"]


def test_a_role_that_was_removed_from_the_job_loses_its_pods() -> None:
    status = begun(job(workers(1), servers(1)), *pods("worker-0", "ps-0"))
    decision = look(job(workers(1)), *pods("worker-0", "ps-0"), status=status)
    assert deleted(decision) == ["mnist-ps-0"]
    assert list(decision.status.replica_statuses) == ["Worker"]


def test_a_pod_whose_name_is_not_its_tasks_is_deleted() -> None:
    asked = job(workers(1))
    twin = replace(pod("worker-0"), name="mnist-worker-0-old", uid="twin")
    decision = look(asked, pod("worker-0"), twin, status=begun(asked))
    assert deleted(decision) == ["mnist-worker-0-old"]


def test_a_task_waits_for_its_name_while_the_predecessor_leaves() -> None:
    asked = job(workers(1, "OnFailure"))
    leaving = pod("worker-0", "Failed", exit_code=1, deleting=at(30))
    status = look(asked, leaving, status=begun(asked, pod("worker-0"))).status
    assert created(look(asked, leaving, status=status)) == []
    assert attempt(look(asked, status=status), "worker-0") == "1"


def test_edits_to_a_finished_job_touch_its_clean_up_only() -> None:
    asked = job(workers(1))
    done = look(asked, pod("worker-0", "Succeeded"), status=begun(asked)).status
    grown = job(workers(5), clean="All", generation=2)
    decision = look(grown, pod("worker-0", "Succeeded"), status=done)
    assert (created(decision), deleted(decision)) == ([], ["mnist-worker-0"])


def test_a_laptop_and_a_cluster_decide_alike() -> None:
    asked = job(chief(), workers(2, "ExitCode"))
    seen = [pod("chief-0"), pod("worker-0", "Failed", exit_code=137), pod("worker-1")]
    laptop = Site(services="none", ports={task: 4000 + i for i, task in enumerate(asked.tasks())})
    here, there = (look(asked, *seen, status=begun(asked, site=s), site=s) for s in (laptop, Site()))
    assert replace(here.status, cluster=None) == replace(there.status, cluster=None)
    assert deleted(here) == deleted(there)
