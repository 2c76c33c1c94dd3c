"""Back-off of a task whose pods fail, or are taken away, one after the other."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.model import RoleMemory, TaskBackoff
from tfyard.model.backoff import Backoff
from tfyard.planner import Site
from tfyard.views.tfjob_status import load_status

from .builders import at, created, deleted, job, shown, told, workers
from .world import World

LOOP = [0, 10, 20, 40, 80, 160, 320, 600, 600]
"""Seconds before the second attempt, the third, …: a Job's own numbers, after one attempt for free."""


class Loop(World):
    """A world in which worker-0 ends as soon as it runs, again and again."""

    def __init__(self, site: Site | None = None, policy: str = "ExitCode", **fields: Any) -> None:
        super().__init__(job(workers(2, policy), **fields), site or Site())
        self.settle()

    def end(self, **fields: Any) -> None:
        """It ends, the planner looks, and nothing is left of it."""
        self.start()
        started = self.pods["mnist-worker-0"].started or self.now
        self.change("mnist-worker-0", started=started, **(fields or CRASH))
        self.step()
        self.pods.pop("mnist-worker-0", None)

    def made_again_after(self) -> float:
        """Seconds until its pod is there again; only what the decision asks for wakes the planner."""
        began = self.now
        while "mnist-worker-0" not in self.pods:
            decision = self.step()
            if "mnist-worker-0" not in self.pods:
                assert decision.wake_after is not None
                self.now += timedelta(seconds=decision.wake_after)
        return (self.now - began).total_seconds()

    def message(self) -> str:
        condition = self.status.condition("Restarting")
        assert condition is not None
        return condition.message


CRASH = {"phase": "Failed", "exit_code": 137}
ENDS: dict[str, Callable[[datetime], dict[str, Any]]] = {
    "a program that is killed": lambda _now: CRASH,
    "a pod that is evicted": lambda _now: {"phase": "Failed", "disrupted": True},
    "a pod that somebody deletes": lambda now: {"deleting": now + timedelta(seconds=30)},
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_first_replacement_comes_at_once_and_each_later_one_waits_twice_as_long(
    end: Callable[[datetime], dict[str, Any]],
) -> None:
    world = Loop()
    waits = []
    for _ in LOOP:
        world.end(**end(world.now))
        waits.append(world.made_again_after())
    assert waits == LOOP


def test_a_crash_loop_makes_five_pods_in_its_first_75_seconds() -> None:
    world = Loop()
    began, before = world.now, world.made
    while world.now < began + timedelta(seconds=75):
        world.end()
        world.made_again_after()
    assert world.made - before == 5


def test_the_other_tasks_do_not_wait() -> None:
    world = Loop()
    for _ in range(3):
        world.end()
        world.made_again_after()
    world.end()
    world.change("mnist-worker-1", **CRASH)
    world.step()
    assert created(world.step()) == ["mnist-worker-1"]


@pytest.mark.parametrize(("ran", "waits"), [(599, 40), (600, 0)])
def test_ten_minutes_of_running_are_a_new_beginning(ran: int, waits: int) -> None:
    world = Loop()
    for _ in range(3):
        world.end()
        world.made_again_after()
    world.start()
    world.change("mnist-worker-0", started=world.now)
    world.now += timedelta(seconds=ran)
    world.end()
    assert world.made_again_after() == waits
    world.end()
    assert world.made_again_after() == (80 if waits else 10)


def test_a_pod_that_never_started_has_not_run() -> None:
    world = Loop()
    world.end()
    world.made_again_after()
    world.now += timedelta(seconds=900)
    world.change("mnist-worker-0", phase="Failed", disrupted=True)
    world.step()
    assert world.made_again_after() == 10


def test_the_message_says_which_task_waits_how_long_and_why() -> None:
    world, base = Loop(), "job mnist is restarting because Worker replica(s) failed."
    for attempt, wait in enumerate(LOOP[:5], 2):
        world.end(**CRASH, reason="OOMKilled")
        why = f"worker-0 waits {wait} s before attempt {attempt}: exited with code 137 (OOMKilled)"
        assert world.message() == (f"{base} {why}" if wait else base)
        world.made_again_after()


def test_that_a_task_waits_is_an_event_at_each_failure() -> None:
    world = Loop()
    seen = []
    for _ in range(3):
        world.start()
        world.change("mnist-worker-0", **CRASH)
        seen += [text for _, reason, text in told(world.step()) if reason == "TFJobRestarting"]
        world.step()
        world.made_again_after()
    assert [text.partition(" failed. ")[2] for text in seen] == [
        "",
        "worker-0 waits 10 s before attempt 3: exited with code 137",
        "worker-0 waits 20 s before attempt 4: exited with code 137",
    ]


def test_an_evicted_task_says_why_it_waits() -> None:
    world = Loop()
    for _ in range(2):
        world.end(phase="Failed", disrupted=True)
        world.made_again_after()
    assert world.message() == (
        "job mnist is restarting because Worker replica(s) were evicted or deleted."
        " worker-0 waits 10 s before attempt 3: evicted or deleted"
    )


def test_of_many_tasks_that_wait_three_are_named() -> None:
    world = World(job(workers(5, "ExitCode")))
    for _ in range(2):
        world.settle()
        for name in list(world.pods):
            world.change(name, **CRASH)
        decision = world.step()
    assert told(decision)[-1][2].partition(" failed. ")[2] == (
        "worker-0 waits 10 s before attempt 3: exited with code 137;"
        " worker-1 waits 10 s before attempt 3: exited with code 137;"
        " worker-2 waits 10 s before attempt 3: exited with code 137; 2 more wait"
    )


def test_the_job_is_restarting_while_a_task_waits_and_nothing_is_written_meanwhile() -> None:
    world = Loop()
    world.end()
    world.made_again_after()
    world.end()
    before = world.stored
    world.now += timedelta(seconds=4)
    decision = world.step()
    assert (decision.actions, decision.wake_after) == ((), 6.0)
    assert world.stored == before
    assert shown(world.status)[-1] == "Restarting=True (TFJobRestarting)"


def test_a_wait_is_never_shorter_than_reported_though_times_are_stored_in_whole_seconds() -> None:
    world = Loop()
    world.now += timedelta(seconds=0.4)
    world.end()
    world.made_again_after()
    world.end()
    assert world.made_again_after() == 10.6


def test_a_job_that_fails_once_remembers_no_more_than_its_attempt() -> None:
    world = Loop()
    world.end()
    assert world.status.tasks == {"Worker": RoleMemory(attempts={"0": 1}, retries=1)}


def test_the_wait_is_in_the_status_and_goes_when_the_task_has_finished() -> None:
    world = Loop(success="AllWorkers")
    world.end()
    world.made_again_after()
    world.end()
    stored = json.loads(world.stored)["tasks"]["Worker"]
    assert stored["backoff"] == {"0": {"failures": 2, "until": "2026-03-04T05:06:17Z"}}
    assert world.status.tasks["Worker"].backoff == {"0": TaskBackoff(failures=2, until=at(10))}
    world.made_again_after()
    world.change("mnist-worker-0", phase="Succeeded", exit_code=0)
    world.step()
    assert world.status.tasks["Worker"] == RoleMemory(attempts={"0": 2}, finished="0", retries=2)


def waiting(**fields: Any) -> Loop:
    world = Loop(**fields)
    for _ in range(3):
        world.end()
        world.made_again_after()
    world.end()
    assert "mnist-worker-0" not in world.pods
    return world


def test_a_suspension_does_not_wait_and_the_resumed_job_begins_at_once() -> None:
    world = waiting()
    policy = world.job.run_policy
    world.job = replace(world.job, run_policy=replace(policy, suspend=True))
    assert deleted(world.step()) == ["mnist-worker-1"]
    assert world.status.phase == "Suspended"
    world.start()
    world.job = replace(world.job, run_policy=policy)
    assert created(world.step()) == ["mnist-worker-0", "mnist-worker-1"]


def test_the_deadline_does_not_wait() -> None:
    world = waiting(deadline=31)
    assert world.decide().wake_after == 2.0
    world.now += timedelta(seconds=2)
    world.step()
    assert world.status.failure is not None
    assert world.status.failure.cause == "DeadlineExceeded"


def test_the_limit_does_not_wait() -> None:
    world = Loop(backoff_limit=1)
    world.end()
    world.made_again_after()
    world.end()
    assert world.status.phase == "Failed"


def test_a_task_that_is_scaled_away_is_forgotten() -> None:
    world = waiting()
    world.job = replace(world.job, roles=(workers(0, "ExitCode"),))
    world.step()
    assert "backoff" not in world.stored


def test_a_site_may_wait_for_less() -> None:
    world = Loop(Site(backoff=Backoff(first=1, longest=4)))
    waits = []
    for _ in range(5):
        world.end()
        waits.append(world.made_again_after())
    assert waits == [0, 1, 2, 4, 4]


@pytest.mark.parametrize("backoff", [{"x": {"failures": 1, "until": "2026-03-04T05:06:17Z"}}])
def test_a_wait_of_no_task_is_no_memory(backoff: Any) -> None:
    status = {"tasks": {"Worker": {"backoff": backoff}}}
    with pytest.raises(Invalid, match="must be an index"):
        load_status({"status": status})
