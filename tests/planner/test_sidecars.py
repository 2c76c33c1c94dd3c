"""The end of a task is the end of its program: what else runs in its pod is ended, and the pod stays."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import Amend, Decision, Pod
from tfyard.planner import Site
from tfyard.planner.narrate import narrate

from .builders import (
    at,
    begun,
    chief,
    created,
    deleted,
    evaluator,
    job,
    look,
    pod,
    servers,
    shown,
    told,
    workers,
)
from .world import World

ENDED = {"phase": "Running", "program": "Succeeded", "exit_code": 0, "lingers_since": at(0)}
FAILED = {**ENDED, "program": "Failed", "exit_code": 1}
END = {"activeDeadlineSeconds": 1}


def stopped(decision: Decision) -> list[str]:
    """The pods that are ended in place."""
    amended = [action for action in decision.actions if isinstance(action, Amend) and action.kind == "Pod"]
    assert all(action.patch["spec"] == END for action in amended)
    return [action.name for action in amended]


def test_a_job_succeeds_with_its_program_whatever_still_runs_beside_it() -> None:
    asked = job(workers(1, "OnFailure"))
    decision = look(asked, pod("worker-0", **ENDED), status=begun(asked, pod("worker-0")))
    assert decision.status.phase == "Succeeded"


def test_a_program_that_fails_beside_a_sidecar_is_judged_by_its_own_code() -> None:
    asked = job(workers(1, "ExitCode"))
    decision = look(asked, pod("worker-0", **FAILED), status=begun(asked))
    assert decision.status.failure is not None
    assert decision.status.failure.exit_code == 1
    again = look(asked, pod("worker-0", **{**FAILED, "exit_code": 137}), status=begun(asked))
    assert deleted(again) == ["mnist-worker-0"]
    assert again.status.replica_statuses["Worker"].restarts == 1


def test_a_finished_task_of_a_job_that_goes_on_is_ended_in_place_after_a_moment() -> None:
    asked = job(chief(), workers(2))
    seen = [pod("chief-0"), pod("worker-0", **ENDED), pod("worker-1")]
    status = begun(asked, *seen)
    early = look(asked, *seen, status=status, now=at(4))
    assert (stopped(early), deleted(early), early.wake_after) == ([], [], 6.0)
    assert early.status.replica_statuses["Worker"].succeeded == 1
    late = look(asked, *seen, status=status, now=at(10))
    assert (stopped(late), deleted(late), late.wake_after) == (["mnist-worker-0"], [], None)
    (amended,) = [action for action in late.actions if isinstance(action, Amend)]
    assert amended.patch["metadata"] == {"uid": "worker-0#0"}, "never a newer pod of that name"


def test_a_pod_that_is_told_to_end_is_not_told_again_and_its_phase_changes_nothing() -> None:
    world = World(job(chief(), workers(1)))
    world.settle()
    world.change("mnist-worker-0", **ENDED)
    world.now = at(30)
    world.settle()
    assert world.pods["mnist-worker-0"].phase == "Failed"
    assert world.status.phase == "Running"
    assert world.status.replica_statuses["Worker"].succeeded == 1
    assert created(world.decide()) == []


BOTH = ["mnist-worker-0", "mnist-ps-0"]
CLEANED: dict[str, tuple[Any, bool, list[str], list[str]]] = {
    "pods that stay are ended in place": ("None", False, ["mnist-worker-0"], []),
    "so are those of programs that have ended": ("Running", False, ["mnist-worker-0"], ["mnist-ps-0"]),
    "upstream deletes them, because their phase is Running": ("Running", True, [], BOTH),
    "all are deleted": ("All", False, [], BOTH),
}


@pytest.mark.parametrize(("clean", "kubeflow", "ended", "gone"), CLEANED.values(), ids=CLEANED.keys())
def test_after_the_end_of_the_job_sidecars_end_and_pods_go_by_the_policy(
    clean: Any, kubeflow: bool, ended: list[str], gone: list[str]
) -> None:
    asked, site = job(workers(1), servers(1), clean=clean), Site(kubeflow=kubeflow)
    seen = [pod("worker-0", **ENDED), pod("ps-0")]
    done = look(asked, *seen, status=begun(asked), site=site)
    assert done.status.phase == "Succeeded"
    assert (stopped(done), "mnist-worker-0" in deleted(done), done.wake_after) == ([], False, 10.0)
    late = look(asked, *seen, status=done.status, now=at(10), site=site)
    assert (stopped(late), deleted(late)) == (ended, gone)


def test_a_failure_that_the_job_survives_is_ended_in_place_as_well() -> None:
    asked = job(chief(), workers(1), dynamic_workers=True)
    decision = look(asked, pod("chief-0"), pod("worker-0", **FAILED), status=begun(asked), now=at(60))
    assert stopped(decision) == ["mnist-worker-0"]
    assert not decision.status.is_finished


@pytest.mark.parametrize(
    "leaving",
    [pod("worker-1", **ENDED), pod("worker-0", **ENDED, attempt=0)],
    ids=["scaled away", "given up"],
)
def test_what_is_deleted_anyway_is_not_ended_before(leaving: Pod) -> None:
    asked = job(chief(), workers(1, "OnFailure"))
    failed = replace(leaving, program="Failed") if leaving.task.index == 0 else leaving
    decision = look(asked, pod("chief-0"), failed, status=begun(asked), now=at(60))
    assert (stopped(decision), deleted(decision)) == ([], [leaving.name])


def test_an_evaluator_that_has_ended_is_not_waited_for() -> None:
    asked = job(workers(1), evaluator(), clean="All", evaluator_grace=300)
    seen = [pod("worker-0", "Succeeded"), pod("evaluator-0", **ENDED)]
    decision = look(asked, *seen, status=begun(asked), now=at(20))
    assert deleted(decision) == ["mnist-worker-0", "mnist-evaluator-0"]


def test_an_event_names_the_pods_that_were_ended() -> None:
    asked = job(chief(), workers(1))
    seen = [pod("chief-0"), pod("worker-0", **ENDED)]
    decision = look(asked, *seen, status=begun(asked, *seen), now=at(60))
    text = "Stopped the containers that were left after the end of the program in pod: mnist-worker-0"
    assert [(e.reason, e.message) for e in narrate(decision.actions) if e.reason == "StoppedSidecars"] == [
        ("StoppedSidecars", text)
    ]


def test_an_eviction_that_counts_is_reported_with_the_kubelets_message() -> None:
    asked = job(workers(1, "OnFailure"), backoff_limit=1)
    sentence = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi".'
    evicted = pod("worker-0", "Failed", exit_code=137, reason="Evicted", message=sentence)
    first = look(asked, evicted, status=begun(asked, pod("worker-0")))
    assert ("Warning", "Evicted", f"worker-0 exited with code 137 (Evicted): {sentence}") in told(first)
    assert shown(first.status) == ["Created=True (TFJobCreated)", "Restarting=True (TFJobRestarting)"]
    assert first.status.replica_statuses["Worker"].restarts == 1
    last = look(asked, replace(evicted, attempt=1), status=first.status)
    assert last.status.failure is not None
    assert last.status.failure.message.endswith(f"worker-0 exited with code 137 (Evicted): {sentence}")
