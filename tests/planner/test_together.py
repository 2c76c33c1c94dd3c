"""`together`: whenever one task must start again, all unfinished ones do, once."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tfyard.model import EVALUATOR, PS, WORKER, Decision, Delete, Job, Pod
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
    manifests,
    pod,
    pods,
    role,
    servers,
    told,
    workers,
)
from .test_properties import CRASHES, History, sites
from .world import World

EIGHT = [f"worker-{index}" for index in range(8)]


def ours(*names: str) -> list[str]:
    return [f"mnist-{name}" for name in names]


def test_a_failure_starts_all_again_and_is_one_retry_however_many_fail_with_it() -> None:
    asked = job(workers(3, "OnFailure"), servers(1), backoff_limit=1, together=True)
    status = begun(asked, *pods("worker-0", "worker-1", "worker-2", "ps-0"))
    failed = [pod("worker-0", "Failed", exit_code=1), pod("worker-2", "Failed", exit_code=1)]
    decision = look(asked, *failed, pod("worker-1"), pod("ps-0"), status=status)
    assert sorted(deleted(decision)) == ours("ps-0", "worker-0", "worker-1", "worker-2")
    assert (decision.status.restarts, decision.urgency) == (1, "now")
    text = "job mnist is restarting because worker-0, worker-2 failed: all tasks start again together."
    assert ("Warning", "TFJobRestarting", text) in told(decision)
    late = look(
        asked, pod("worker-1", "Failed", exit_code=1, deleting=at(30)), status=decision.status, now=at(1)
    )
    assert (late.status.restarts, created(late)) == (1, []), "the others fail with it"
    fresh = look(asked, status=late.status, now=at(2))
    assert sorted(created(fresh)) == ours("ps-0", "worker-0", "worker-1", "worker-2")


def test_restart_says_when() -> None:
    asked = job(workers(2, "ExitCode"), together=True)
    status = begun(asked, *pods("worker-0", "worker-1"))
    permanent = look(asked, pod("worker-0", "Failed", exit_code=1), pod("worker-1"), status=status)
    assert permanent.status.has("Failed")
    killed = look(asked, pod("worker-0", "Failed", exit_code=137), pod("worker-1"), status=status)
    assert deleted(killed) == ours("worker-0", "worker-1")


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always", "ExitCode"])
def test_a_disruption_starts_all_again_at_no_retry(policy: str) -> None:
    asked = job(workers(2, policy), together=True, backoff_limit=0)
    status = begun(asked, *pods("worker-0", "worker-1"))
    leaving = pod("worker-1", deleting=at(30), disrupted=True)
    decision = look(asked, pod("worker-0"), leaving, status=status)
    assert deleted(decision) == ours("worker-0"), "worker-1 is asked already"
    assert decision.status.tasks["Worker"].attempts == {"0": 1, "1": 1}
    assert (decision.status.restarts, decision.status.phase) == (0, "Restarting")
    saved = pod("worker-0", "Failed", exit_code=42, deleting=at(30), asked_to_stop=True)
    after = look(asked, saved, status=decision.status, now=at(3))
    assert (after.status.restarts, created(after)) == (0, [])
    early = look(asked, status=after.status, now=at(4))
    assert (created(early), early.wake_after) == ([], 7.0), "more may be taken away"
    fresh = look(asked, status=early.status, now=at(11))
    assert [attempt(fresh, name) for name in ("worker-0", "worker-1")] == ["1", "1"]


def test_a_failure_after_the_new_start_is_judged_as_always() -> None:
    asked = job(workers(2), together=True)
    status = begun(asked, *pods("worker-0", "worker-1"))
    leaving = pod("worker-1", deleting=at(30), disrupted=True)
    status = look(asked, pod("worker-0"), leaving, status=status).status
    back = (pod("worker-0", "Failed", attempt=1, exit_code=1), pod("worker-1", attempt=1))
    assert look(asked, *back, status=status, now=at(12)).status.has("Failed")


def test_a_drain_of_several_nodes_is_one_restart() -> None:
    world = World(job(workers(8), together=True, backoff_limit=0))
    world.settle()
    for index in (1, 3, 5, 7):
        world.delete(f"mnist-worker-{index}")
        world.step()
        world.now += timedelta(seconds=1)
    for _ in range(3):
        world.start()
        world.step()
    assert world.pods == {}
    world.now += timedelta(seconds=10)
    world.settle()
    assert {each.attempt for each in world.pods.values()} == {1}
    assert (world.made, world.status.restarts, world.status.phase) == (16, 0, "Running")


def test_a_pod_that_vanishes_unseen_starts_all_again() -> None:
    asked = job(workers(2), together=True)
    decision = look(asked, pod("worker-0"), status=begun(asked, *pods("worker-0", "worker-1")))
    assert (deleted(decision), created(decision)) == (ours("worker-0"), [])


def test_pods_of_such_a_job_are_restarted_by_no_kubelet() -> None:
    made = manifests(look(job(workers(2, "OnFailure"), servers(1, "Always"), together=True)))
    assert {each["spec"]["restartPolicy"] for each in made.values()} == {"Never"}
    upstream = manifests(look(job(workers(1, "OnFailure"), together=True), site=Site(kubeflow=True)))
    assert {each["spec"]["restartPolicy"] for each in upstream.values()} == {"OnFailure"}


def test_where_all_workers_must_finish_those_that_have_finished_run_again() -> None:
    asked = job(workers(3, "OnFailure"), evaluator(), success="AllWorkers", together=True)
    here = [pod("worker-0", "Succeeded"), pod("worker-1"), pod("worker-2", "Succeeded")]
    done = pod("evaluator-0", "Succeeded")
    status = look(asked, *here, done, status=begun(asked, *pods(*EIGHT[:3], "evaluator-0"))).status
    without = (here[0], here[1], done)  # worker-2's pod was deleted by somebody
    status = look(asked, *without, status=status).status
    decision = look(asked, here[0], pod("worker-1", "Failed", exit_code=1), done, status=status)
    assert deleted(decision) == ours("worker-1", "worker-0")
    fresh = look(asked, done, status=decision.status, now=at(1))
    assert created(fresh) == ours("worker-0", "worker-1", "worker-2")
    assert fresh.status.tasks["Evaluator"].finished == "0", "an evaluator has evaluated"


def test_without_that_finished_workers_stay_finished() -> None:
    asked = job(workers(3, "OnFailure"), together=True)
    here = [pod("worker-0"), pod("worker-1", "Failed", exit_code=1), pod("worker-2", "Succeeded")]
    decision = look(asked, *here, status=begun(asked, *pods(*EIGHT[:3])))
    assert sorted(deleted(decision)) == ours("worker-0", "worker-1")


def test_success_comes_before_a_new_start() -> None:
    asked = job(workers(2), evaluator(), success="AllWorkers", together=True)
    here = [pod("worker-0", "Succeeded"), pod("worker-1", "Succeeded"), pod("evaluator-0", deleting=at(30))]
    assert look(asked, *here, status=begun(asked)).status.has("Succeeded")


def test_a_scale_is_a_restart_of_all_and_says_so() -> None:
    before, asked = job(workers(2), together=True), job(workers(3), together=True, backoff_limit=0)
    status = begun(before, *pods("worker-0", "worker-1"))
    decision = look(asked, *pods("worker-0", "worker-1"), status=status)
    assert (deleted(decision), created(decision)) == (ours("worker-0", "worker-1"), [])
    text = (
        "job mnist is restarting because it was scaled: all tasks start again together, which costs no retry."
    )
    assert told(decision) == [("Warning", "TFJobRestarting", text)]
    fresh = look(asked, status=decision.status, now=at(1))
    assert (created(fresh), fresh.status.restarts) == (ours(*EIGHT[:3]), 0)
    less = look(before, *pods(*EIGHT[:3]), status=begun(asked, *pods(*EIGHT[:3])))
    assert sorted(deleted(less)) == ours(*EIGHT[:3])
    excess = replace(pod("worker-2"), deleting=at(30))
    assert created(look(before, excess, status=less.status)) == []


def test_a_scale_of_a_suspended_job_is_no_restart() -> None:
    asleep = begun(job(workers(2), together=True, suspend=True))
    asked = job(workers(3), together=True, suspend=True)
    status = look(asked, status=asleep).status
    awake = look(job(workers(3), together=True), status=status)
    assert (created(awake), awake.status.has("Restarting")) == (ours(*EIGHT[:3]), False)


def test_all_wait_as_long_as_the_one_that_fails_repeatedly() -> None:
    asked = job(workers(2, "OnFailure"), together=True)
    status = begun(asked, *pods("worker-0", "worker-1"))
    for number in range(2):
        failed = pod("worker-1", "Failed", attempt=number, exit_code=1, started=NOW)
        decision = look(asked, pod("worker-0", attempt=number), failed, status=status)
        status = decision.status
    gone = look(asked, status=status, now=at(1))
    assert (created(gone), gone.wake_after) == ([], 9.0)
    assert created(look(asked, status=status, now=at(10))) == ours("worker-0", "worker-1")


def test_failures_beyond_the_limit_are_shown_as_failures() -> None:
    asked = job(workers(3, "OnFailure"), together=True, backoff_limit=0)
    here = [*(pod(name, "Failed", exit_code=1) for name in EIGHT[:2]), pod("worker-2")]
    status = look(asked, *here, status=begun(asked, *pods(*EIGHT[:3]))).status
    counts = status.replica_statuses["Worker"]
    assert (status.phase, counts.failed, counts.active, counts.restarts) == ("Failed", 2, 1, 0)


# --- random worlds

thorough = settings(max_examples=200, derandomize=True)
TOGETHER_MOVES = (
    "start",
    "start",
    "start",
    "fail",
    "evict",
    "delete",
    "end",
    "vanish",
    "finish",
    "later",
    "suspend",
)
QUIET_MOVES = ("start", "start", "evict", "delete", "end", "vanish", "later", "suspend")
Moves = list[tuple[str, int, str]]


def histories(
    *names: str, crashes: tuple[str, ...] = CRASHES, length: tuple[int, int] = (0, 25)
) -> st.SearchStrategy[Moves]:
    move = st.tuples(st.sampled_from(names), st.integers(0, 11), st.sampled_from(crashes))
    return st.lists(move, min_size=length[0], max_size=length[1])


@st.composite
def jobs_together(draw: st.DrawFn, restart: Any = None) -> Job:
    policy = restart or draw(st.sampled_from(["OnFailure", "ExitCode", "Always", "Never"]))
    return job(
        role(WORKER, draw(st.integers(2, 4)), policy),
        role(PS, draw(st.integers(0, 1)), policy),
        role(EVALUATOR, draw(st.integers(0, 1)), policy),
        success=draw(st.sampled_from(["", "AllWorkers"])),
        backoff_limit=draw(st.sampled_from([None, 3, 1])),
        together=True,
    )


class TogetherHistory(History):
    """A history that looks whether pods of two starts run at once."""

    def apply(self, actions: Any) -> None:
        gone = {action.uid for action in actions if isinstance(action, Delete)}
        super().apply(actions)
        tasks = self.status.tasks
        alive = [each for each in self.pods.values() if each.phase in ("Pending", "Running")]
        old = [each for each in alive if _is_old(each, tasks) or each.uid in gone]
        new = [each for each in alive if each not in old and each.deleting is None]
        done = self.status.is_finished or self.job.run_policy.suspend
        assert done or not (old and new), (old, new)

    def check(self, was_finished: bool) -> None:
        """Failures are counted once, so the exact count of the other histories does not hold."""
        status, limit = self.status, self.job.run_policy.backoff_limit
        assert status.is_finished or not was_finished, "an end is final"
        assert status.is_finished or limit is None or status.restarts <= limit


def _is_old(pod: Pod, tasks: Any) -> bool:
    memory = tasks.get(pod.task.role)
    return memory is not None and pod.attempt < memory.attempts.get(str(pod.task.index), 0)


def settled(history: World) -> None:
    """Time passes until nothing waits for a burst to end."""
    history.settle()
    history.now += timedelta(seconds=60)
    history.settle()


@thorough
@given(jobs_together(), histories(*TOGETHER_MOVES), sites)
def test_pods_of_two_starts_never_run_at_once_and_every_job_comes_to_rest(
    asked: Job, moves: Moves, site: Site
) -> None:
    history = TogetherHistory(asked, site)
    for move in moves:
        history.move(*move)
    history.do_suspend(0)
    settled(history)
    assert history.decide().actions == ()
    pending = [each.name for each in history.pods.values() if each.phase == "Pending"]
    assert history.status.is_finished or pending == []


@thorough
@given(jobs_together(), histories(*QUIET_MOVES), sites)
def test_disruptions_alone_never_fail_a_job(asked: Job, moves: Moves, site: Site) -> None:
    history = TogetherHistory(asked, site)
    for move in moves:
        history.move(*move)
    history.do_suspend(0)
    settled(history)
    assert (history.status.failure, history.status.restarts) == (None, 0)


@thorough
@given(st.integers(2, 4), st.integers(0, 3), st.data(), sites)
def test_a_program_that_always_fails_ends_after_as_many_starts_as_retries_and_one(
    size: int, retries: int, data: st.DataObject, site: Site
) -> None:
    world = World(job(role(WORKER, size, "OnFailure"), together=True, backoff_limit=retries), site)
    starts = 0
    while not world.status.is_finished:
        settled(world)
        starts += 1
        assert {each.attempt for each in world.pods.values()} == {starts - 1}
        some = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
        for index in some:
            world.change(f"mnist-worker-{index}", phase="Failed", exit_code=1)
        world.step()
    assert starts == retries + 1


PEER_MOVES = (
    *("start", "start", "start", "start", "later", "later", "later", "later"),
    *("fail", "fail", "restart", "restart", "crash", "evict", "delete", "vanish"),
)
SELDOM = ("",) * 16 + CRASHES
"""Crashes in stories that are about something else."""


class PeerHistory(History):
    """A history that counts the new starts of all tasks that cost no retry."""

    forgiven = 0

    def report(self, decision: Decision) -> None:
        self.forgiven += any("failed after it" in event.message for event in decision.events)
        super().report(decision)


@thorough
@given(
    st.sampled_from(["Never", "ExitCode", "OnFailure", "OnFailure"]),
    st.integers(2, 3),
    histories(*PEER_MOVES, crashes=SELDOM, length=(12, 30)),
)
def test_each_failure_is_forgiven_or_counted_and_none_forgiven_twice_for_one_disruption(
    policy: str, size: int, moves: Moves
) -> None:
    """Which of the two, the history knows from a rule of its own."""
    history = PeerHistory(job(role(WORKER, size, policy)), Site())
    for move in (("start", 0, ""), ("delete", 0, ""), ("start", 0, ""), *moves):
        history.move(*move)
        assert history.forgiven <= history.disruptions
