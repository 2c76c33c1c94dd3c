"""A task is taken away, and others fail because of it: one new start of all, at no retry."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import Disruption, Pod, Status
from tfyard.planner import Site

from .builders import (
    NOW,
    at,
    attempt,
    begun,
    created,
    deleted,
    evaluator,
    job,
    look,
    pod,
    pods,
    servers,
    told,
    workers,
)
from .world import World

BOTH = ["mnist-worker-0", "mnist-worker-1"]
EVICTED = pod("worker-1", deleting=at(30), disrupted=True)
COMPAT = Site(kubeflow=True)


def taken(asked: Any, *others: Pod, site: Site = Site()) -> Status:  # noqa: B008
    """The status after worker-1 was evicted, while the others still run."""
    others = others or (pod("worker-0"),)
    running = begun(asked, *others, pod("worker-1"), site=site)
    return look(asked, *others, EVICTED, status=running, site=site).status


@pytest.mark.parametrize("code", [42, 143, 1, None])
@pytest.mark.parametrize("policy", ["Never", "ExitCode", "OnFailure", "Always"])
def test_a_task_that_fails_after_a_peer_was_taken_away_starts_again_with_all_others(
    policy: str, code: int | None
) -> None:
    asked = job(workers(3, policy), backoff_limit=0)
    before = taken(asked, pod("worker-0"), pod("worker-2"))
    failed = pod("worker-0", "Failed", exit_code=code, message="AbortedError: different incarnation")
    decision = look(asked, failed, EVICTED, pod("worker-2"), status=before, now=at(2))
    assert (decision.status.phase, decision.status.restarts) == ("Restarting", 0)
    assert decision.status.tasks["Worker"].attempts == {"0": 1, "1": 1, "2": 1}, "all at once"
    assert deleted(decision) == ["mnist-worker-0", "mnist-worker-2"], "worker-1 is leaving already"
    assert created(decision) == []
    assert decision.urgency == "now"
    text = (
        "job mnist is restarting because worker-1 was evicted or deleted, and worker-0 failed after it:"
        " all tasks start again, which costs no retry."
    )
    assert ("Warning", "TFJobRestarting", text) in told(decision)
    lost = next(end for end in decision.status.endings if end.task == "worker-0")
    assert (lost.reason, lost.peer, lost.exit_code) == ("PeerLost", "worker-1", code)
    assert lost.message == "AbortedError: different incarnation"


def test_new_pods_wait_until_all_old_ones_are_gone() -> None:
    asked = job(workers(3))
    before = taken(asked, pod("worker-0"), pod("worker-2"))
    failed = pod("worker-0", "Failed", exit_code=1)
    status = look(asked, failed, EVICTED, pod("worker-2"), status=before).status
    slow = pod("worker-2", deleting=at(30))
    waiting = look(asked, slow, status=status, now=at(3))
    assert created(waiting) == []
    assert waiting.status == status, "and nothing is written meanwhile"
    fresh = look(asked, status=status, now=at(4))
    assert created(fresh) == ["mnist-worker-0", "mnist-worker-1", "mnist-worker-2"]
    assert [attempt(fresh, f"worker-{index}") for index in range(3)] == ["1", "1", "1"]
    again = [pod("worker-0", "Pending", attempt=1), pod("worker-1", attempt=1)]
    assert created(look(asked, *again, status=fresh.status)) == ["mnist-worker-2"], "one was refused before"


def test_the_replacement_itself_may_be_the_one_that_fails() -> None:
    asked = job(workers(2))
    status = look(asked, pod("worker-0"), status=taken(asked)).status
    refused = pod("worker-1", "Failed", attempt=1, exit_code=1)
    decision = look(asked, pod("worker-0"), refused, status=status, now=at(20))
    assert sorted(deleted(decision)) == BOTH
    assert decision.status.tasks["Worker"].attempts == {"0": 1, "1": 2}


def test_a_job_whose_other_tasks_go_on_is_left_alone() -> None:
    asked = job(workers(3))
    status = taken(asked, pod("worker-0"), pod("worker-2"))
    back = [pod("worker-0"), pod("worker-1", attempt=1), pod("worker-2")]
    for seconds in (1, 30, 90):
        decision = look(asked, *back, status=status, now=at(seconds))
        status = decision.status
        assert (deleted(decision), status.phase) == ([], "Running")


def test_the_disruption_is_over_when_all_tasks_have_run_for_a_minute() -> None:
    asked = job(workers(2))
    status = taken(asked)
    status = look(asked, pod("worker-0"), pod("worker-1", "Pending", attempt=1), status=status).status
    back = (pod("worker-0"), pod("worker-1", attempt=1))
    status = look(asked, *back, status=status, now=at(300)).status
    assert status.disruption == Disruption(tasks=("worker-1",), since=NOW, recovered=at(300))
    failed = pod("worker-0", "Failed", exit_code=1)
    early = look(asked, failed, back[1], status=status, now=at(359))
    assert not early.status.is_finished
    late = look(asked, failed, back[1], status=status, now=at(360))
    assert late.status.has("Failed")


def test_all_start_again_once_for_each_disruption() -> None:
    world = World(job(workers(2)))
    world.settle()
    for _ in range(2):
        world.delete("mnist-worker-1")
        world.step()
        world.change("mnist-worker-0", phase="Failed", exit_code=1)
        world.settle()
        assert world.status.phase == "Running"
    world.change("mnist-worker-0", phase="Failed", exit_code=1)
    world.settle()
    assert world.status.has("Failed"), "the second failure after a disruption is the program's own"
    assert world.status.failure.exit_code == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("code", [42, 143])
def test_the_codes_of_tensorflows_handler_are_ordinary_without_a_disruption(code: int) -> None:
    asked = job(workers(2))
    status = begun(asked, *pods("worker-0", "worker-1"))
    decision = look(asked, pod("worker-0", "Failed", exit_code=code), pod("worker-1"), status=status)
    assert decision.status.has("Failed")


def test_a_task_without_peers_is_judged_as_always() -> None:
    asked = job(workers(1))
    gone = look(asked, pod("worker-0", deleting=at(30)), status=begun(asked, pod("worker-0"))).status
    assert gone.disruption is None
    failed = pod("worker-0", "Failed", attempt=1, exit_code=1)
    assert look(asked, failed, status=gone).status.has("Failed")


@pytest.mark.parametrize("policy", ["Never", "ExitCode", "OnFailure"])
def test_compat_kubeflow_forgives_nothing(policy: str) -> None:
    asked = job(workers(2, policy), together=True)
    status = taken(asked, site=COMPAT)
    assert status.disruption is None
    decision = look(
        asked, pod("worker-0", "Failed", exit_code=42), EVICTED, status=status, site=COMPAT, now=at(1)
    )
    assert decision.status.has("Failed") == (policy != "OnFailure")
    assert deleted(decision) == (["mnist-worker-0"] if policy == "OnFailure" else [])
    assert decision.status.restarts == (policy == "OnFailure")


def test_failures_that_the_job_survives_anyway_restart_nothing() -> None:
    asked = job(servers(1), workers(2), dynamic_workers=True)
    status = taken(asked, pod("worker-0"), pod("ps-0"))
    decision = look(
        asked, pod("worker-0", "Failed", exit_code=1), pod("ps-0"), EVICTED, status=status, now=at(1)
    )
    assert deleted(decision) == []


def test_finished_tasks_stay_finished() -> None:
    asked = job(workers(3), evaluator(), success="AllWorkers")
    others = (pod("worker-0"), pod("worker-2", "Succeeded"), pod("evaluator-0", "Succeeded"))
    status = taken(asked, *others)
    failed = pod("worker-0", "Failed", exit_code=1)
    decision = look(asked, failed, *others[1:], EVICTED, status=status)
    assert deleted(decision) == ["mnist-worker-0"]
    assert (decision.status.tasks["Worker"].finished, decision.status.tasks["Evaluator"].finished) == (
        "2",
        "0",
    )


# --- restarts in place by the kubelet


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_a_restart_in_place_after_a_disruption_is_forgiven_and_remembered(policy: str) -> None:
    asked = job(workers(2, policy), backoff_limit=1)
    status = taken(asked)
    due = pod("worker-0", restart_due=True, exit_code=1, run_ended=at(2))
    decision = look(asked, due, EVICTED, status=status, now=at(2))
    assert not decision.status.is_finished
    assert deleted(decision) == []
    back = pod("worker-0", restarts=1, exit_code=1, running_since=at(12), run_ended=at(2))
    renewed = pod("worker-1", attempt=1)
    status = look(asked, back, renewed, status=decision.status, now=at(12)).status
    assert (status.restarts, status.phase) == (0, "Running")
    assert status.tasks["Worker"].excused == {"0": ("peer/1",)}
    assert [end.reason for end in status.endings if end.task == "worker-0"] == ["PeerLost"]
    status = look(asked, back, renewed, status=status, now=at(90)).status
    assert status.restarts == 0
    later = replace(back, restarts=2, run_ended=at(95), running_since=at(96))
    status = look(asked, later, renewed, status=status, now=at(100)).status
    assert status.restarts == 1, "the disruption was over"


@pytest.mark.parametrize("is_due", [True, False])
def test_a_task_that_fails_in_place_once_more_starts_again_with_all_others(is_due: bool) -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=0)
    status = taken(asked)
    back = pod("worker-0", restarts=1, exit_code=1, running_since=at(12))
    status = look(asked, back, pod("worker-1", attempt=1), status=status, now=at(12)).status
    again = replace(back, restart_due=True) if is_due else replace(back, restarts=2)
    decision = look(asked, again, pod("worker-1", attempt=1), status=status, now=at(20))
    assert deleted(decision) == BOTH
    assert (decision.status.restarts, decision.status.phase) == (0, "Restarting")
    fresh = (pod("worker-0", attempt=1, restarts=1, exit_code=1), pod("worker-1", attempt=2))
    after = look(asked, *fresh, status=decision.status, now=at(40)).status
    assert after.has("Failed"), "what fails after that is judged as always"


def test_restarts_in_place_before_the_disruption_still_count() -> None:
    asked = job(workers(2, "OnFailure"))
    restless = pod("worker-0", restarts=3, exit_code=1, running_since=at(-60))
    status = taken(asked, restless)
    assert status.restarts == 3
    later = replace(restless, restarts=4)
    status = look(asked, later, pod("worker-1", attempt=1), status=status, now=at(9)).status
    assert (status.restarts, status.tasks["Worker"].excused) == (3, {"0": ("peer/4",)})


# --- nodes that take a pod away by themselves, and tell of it when the pod has ended


EVICTED_BY_KUBELET = pod("worker-1", "Failed", exit_code=42, disrupted=True, reason="Evicted")


def saved(name: str, policy: str = "Never", **fields: Any) -> Pod:
    """The pod of a task that has saved a checkpoint and ended, two seconds after NOW."""
    phase = "Running" if policy in ("OnFailure", "Always") else "Failed"
    return pod(name, phase, **({"exit_code": 42, "run_ended": at(2)} | fields))


@pytest.mark.parametrize("code", [42, 143])
@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
def test_a_peer_that_has_saved_is_not_judged_before_a_node_may_have_told_of_its_eviction(
    policy: str, code: int
) -> None:
    asked = job(workers(2, policy), backoff_limit=0)
    before, ended = begun(asked, *pods("worker-0", "worker-1")), saved("worker-0", exit_code=code)
    early = look(asked, ended, pod("worker-1"), status=before, now=at(3))
    assert (deleted(early), early.status.is_finished, early.wake_after) == ([], False, 29.0)
    decision = look(asked, ended, EVICTED_BY_KUBELET, status=early.status, now=at(9))
    assert (deleted(decision), decision.status.restarts) == (BOTH, 0)
    assert ("worker-0", "PeerLost", "worker-1") in [
        (end.task, end.reason, end.peer) for end in decision.status.endings
    ]


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
def test_without_an_eviction_the_codes_are_judged_when_one_is_ruled_out(policy: str) -> None:
    asked = job(workers(2, policy), backoff_limit=0)
    before, ended = begun(asked, *pods("worker-0", "worker-1")), saved("worker-0")
    for other, now in ((pod("worker-1"), 32), (saved("worker-1"), 3)):
        assert look(asked, ended, other, status=before, now=at(now)).status.has("Failed")
    here = Site(eviction_lag=0.0)
    assert look(asked, ended, pod("worker-1"), status=before, now=at(2), site=here).status.has("Failed")


def test_other_codes_are_judged_at_once() -> None:
    asked = job(workers(2))
    before = begun(asked, *pods("worker-0", "worker-1"))
    failed = saved("worker-0", exit_code=1)
    assert look(asked, failed, pod("worker-1"), status=before, now=at(2)).status.has("Failed")


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_a_restart_in_place_after_a_save_is_forgiven_although_the_eviction_is_told_later(
    policy: str, limit: int
) -> None:
    asked = job(workers(2, policy), backoff_limit=limit)
    status = begun(asked, *pods("worker-0", "worker-1"))
    due = saved("worker-0", policy, restart_due=True)
    status = look(asked, due, pod("worker-1"), status=status, now=at(2)).status
    assert not status.is_finished
    back = saved("worker-0", policy, restarts=1, running_since=at(3))
    status = look(asked, back, pod("worker-1"), status=status, now=at(4)).status
    assert not status.is_finished
    decision = look(asked, back, EVICTED_BY_KUBELET, status=status, now=at(9))
    assert (deleted(decision), decision.status.restarts) == (["mnist-worker-1"], 0)
    assert decision.status.tasks["Worker"].excused == {"0": ("peer/1",)}
    ending = next(end for end in decision.status.endings if end.task == "worker-0")
    assert (ending.reason, ending.peer) == ("PeerLost", "worker-1")


def test_a_retry_beyond_the_limit_is_found_when_an_eviction_is_ruled_out() -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=1)
    status = begun(asked, *pods("worker-0", "worker-1"))
    here = (saved("worker-0", "OnFailure", restarts=2, running_since=at(3)), pod("worker-1"))
    status = look(asked, *here, status=status, now=at(4)).status
    assert not status.is_finished
    assert look(asked, *here, status=status, now=at(32)).status.has("Failed")


# --- other ways to lose a task


def test_a_pod_that_vanished_unseen_was_taken_away() -> None:
    asked = job(workers(2))
    running = begun(asked, *pods("worker-0", "worker-1"))
    gone = look(asked, pod("worker-0"), status=running)
    assert (created(gone), gone.status.disruption) == (
        ["mnist-worker-1"],
        Disruption(tasks=("worker-1",), since=NOW),
    )
    failed = pod("worker-0", "Failed", exit_code=1)
    decision = look(asked, failed, pod("worker-1", "Pending"), status=gone.status, now=at(1))
    assert deleted(decision) == BOTH


def test_a_pod_that_was_never_there_is_no_disruption() -> None:
    asked = job(workers(3))
    status = begun(asked, pod("worker-0"))
    assert look(asked, pod("worker-0"), status=status).status.disruption is None
    scaled = look(job(workers(4)), pod("worker-0"), status=status).status
    assert scaled.disruption is None


@pytest.mark.parametrize(
    "rebooted",
    [
        pod("worker-1", restart_due=True, disrupted=True, exit_code=255, reason="Unknown"),
        pod("worker-1", restarts=1, excused=("tensorflow/1",), running_since=at(1)),
    ],
    ids=["down", "back"],
)
def test_a_reboot_of_a_node_takes_its_tasks_away(rebooted: Pod) -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=0)
    status = look(asked, pod("worker-0"), rebooted, status=begun(asked, *pods("worker-0", "worker-1"))).status
    assert status.disruption is not None
    assert status.disruption.tasks == ("worker-1",)
    decision = look(asked, pod("worker-0", "Failed", exit_code=1), rebooted, status=status, now=at(2))
    assert deleted(decision) == BOTH
    assert decision.status.restarts == 0


def test_a_task_that_is_about_to_be_evicted_is_a_disruption_once() -> None:
    """Preemption by a scheduler marks a pod before it deletes it; a mark may stay though nothing follows."""
    asked = job(workers(2))
    marked = pod("worker-1", disrupted=True)
    status = look(asked, pod("worker-0"), marked, status=begun(asked, *pods("worker-0", "worker-1"))).status
    failed = pod("worker-0", "Failed", exit_code=42)
    assert deleted(look(asked, failed, marked, status=status, now=at(1))) == BOTH
    status = look(asked, pod("worker-0"), marked, status=status, now=at(2)).status
    assert look(asked, failed, marked, status=status, now=at(90)).status.has("Failed")


def test_the_first_of_many_tasks_are_named() -> None:
    asked = job(workers(6))
    names = [f"worker-{index}" for index in range(6)]
    leaving = [replace(each, deleting=at(30)) for each in pods(*names[1:])]
    status = look(asked, pod("worker-0"), *leaving, status=begun(asked, *pods(*names))).status
    assert status.disruption is not None
    assert status.disruption.tasks == ("worker-1", "worker-2", "worker-3")


def test_a_suspension_ends_a_disruption() -> None:
    asked = job(workers(2))
    status = look(job(workers(2), suspend=True), pod("worker-0"), EVICTED, status=taken(asked)).status
    assert status.disruption is None


def test_a_disruption_costs_no_status_beyond_those_of_the_replacement() -> None:
    """Written are: the replacement is decided, its pod is there, all run again. A minute later nothing is."""
    world = World(job(workers(2)))
    world.settle()
    stored = [world.stored]

    def step() -> None:
        world.step()
        if world.stored != stored[-1]:
            stored.append(world.stored)

    world.delete("mnist-worker-1")
    step()
    world.start()
    step()
    world.start()
    step()
    assert len(stored) == 3
    world.now += timedelta(seconds=61)
    step()
    assert len(stored) == 3
