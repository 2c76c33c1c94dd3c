"""Policies read one situation and return what they found: none of them changes it, so their order is free."""

from collections.abc import Callable
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from tfyard.model import Job, Observed
from tfyard.planner import (
    Site,
    deadline,
    disruption,
    endings,
    gang,
    kueue,
    plan,
    restart,
    success,
    suspend,
    together,
    waiting,
)
from tfyard.planner.decide import decide
from tfyard.planner.situation import Situation, survey

from .builders import HERE, NOW, begun, job, look, pod, pods, workers
from .test_properties import jobs, moves, play, sites, thorough

POLICIES: dict[str, Callable[[Situation], Any]] = {
    "restart": lambda s: restart.failure(s, restart.judge(s)),
    "gang": gang.review,
    "kueue": kueue.obstacle,
    "deadline": deadline.failure,
    "success": lambda s: (success.has_succeeded(s), success.is_running(s, waiting.review(s).crashing)),
    "suspend": lambda s: (list(suspend.pods_to_remember(s)), list(suspend.pods_still_leaving(s))),
    "endings": lambda s: endings.remember(s, restart.judge(s).over),
    "plan": lambda s: list(plan.plan(s, gang.review(s), is_held=together.is_held(s, s.before.disruption))),
    "disruption": disruption.review,
    "together": lambda s: together.review(disruption.review(s), restart.judge(s)),
}


@thorough
@given(jobs(), moves, sites)
def test_no_policy_changes_what_it_reads(asked: Job, moves: list[tuple[str, int, str]], site: Site) -> None:
    history = play(asked, moves, site)
    situation = survey(history.job, history.observe(), site, history.now)
    before = deepcopy(situation)
    found = {name: policy(situation) for name, policy in POLICIES.items()}
    assert situation == before
    backwards = {name: policy(situation) for name, policy in reversed(POLICIES.items())}
    assert backwards == found, "whoever is asked first"


@thorough
@given(jobs(), moves, sites)
def test_a_decision_leaves_the_observed_world_as_it_was(
    asked: Job, moves: list[tuple[str, int, str]], site: Site
) -> None:
    history = play(asked, moves, site)
    observed, wanted = history.observe(), deepcopy(history.job)
    before = deepcopy(observed)
    decide(history.job, observed, site, history.now)
    assert (observed, history.job) == (before, wanted)


def test_giving_up_pods_makes_a_new_census_and_keeps_the_old_one() -> None:
    asked = job(workers(2, "OnFailure"))
    seen = Observed(
        status=begun(asked), pods=(pod("worker-0", "Failed", exit_code=1, restarts=2), pod("worker-1"))
    )
    situation = survey(asked, seen, HERE, NOW)
    judged = situation.give_up(restart.judge(situation).given_up)
    old, new = situation.census.roles["Worker"], judged.census.roles["Worker"]
    assert ([p.name for p in old.failed], old.stale, old.retries) == (["mnist-worker-0"], (), 0)
    assert (new.failed, [p.name for p in new.stale], new.retries) == ((), ["mnist-worker-0"], 3)
    assert (dict(old.attempts), dict(new.attempts)) == ({}, {0: 1})
    assert new.running == old.running
    assert situation.give_up(()) == situation


def test_a_census_cannot_be_edited() -> None:
    census = survey(job(workers(1)), Observed(), HERE, NOW).census
    with pytest.raises(AttributeError):
        census.excess = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        census.roles["Worker"].retries = 1  # type: ignore[misc]


def test_a_job_starts_at_its_first_pass_and_again_when_it_is_resumed() -> None:
    asked = job(workers(1))
    late = NOW + timedelta(seconds=90, microseconds=5)

    def start(job: Job, **seen: Any) -> Any:
        return survey(job, Observed(**seen), HERE, late).start

    assert start(asked) == late.replace(microsecond=0), "Kubernetes stores whole seconds"
    running = begun(asked, *pods("worker-0"))
    assert start(asked, status=running) == NOW
    resting = job(workers(1), suspend=True)
    asleep = look(resting, *pods("worker-0"), status=running).status
    assert start(resting, status=asleep) == NOW
    assert start(replace(resting, run_policy=asked.run_policy), status=asleep) == late.replace(microsecond=0)
