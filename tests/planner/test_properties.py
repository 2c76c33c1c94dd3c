"""Properties that hold in every history of a job, wherever its operator is killed.

A history is a list of moves. After each the planner looks once, and may be killed at any point of that look.
"""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tfyard.model import (
    CHIEF,
    EVALUATOR,
    PS,
    ROLES,
    WORKER,
    Create,
    Decision,
    Delete,
    Job,
    Pod,
    Task,
    TensorBoard,
)
from tfyard.planner import Gang, Site

from .builders import job, look, role
from .world import World

RARE = (
    *("finish", "linger", "lag", "crash", "evict", "delete", "end", "vanish", "scale", "suspend"),
    "later",
)
MOVES = ("start", "fail", "restart", *RARE, "start", "fail", "restart", "start")
"""The most frequent step is the start of pods: nothing else can happen to them before."""
CRASHES = ("", "", "", "before report", "after report", "half applied", "status lost")
RETRIED_CODES = {"Always": {1, 137}, "OnFailure": {1, 137}, "ExitCode": {137}, "Never": set[int]()}
"""A copy of the planner's rule, so that the planner is not tested by itself."""


class Forgiveness:
    """When a failure may be, and when it must be, forgiven because a task was taken away: a rule of its own. The
    two differ where a crash keeps the planner from seeing that a task was taken away."""

    def __init__(self) -> None:
        self.may = self.must = False
        self.unseen: list[str] = []
        """Pods that were taken away, and that no stored status tells of yet."""
        self.since: datetime | None = None
        """Since when all tasks run."""

    def take(self, uid: str) -> None:
        self.may, self.since = True, None
        self.unseen.append(uid)

    def see(self, pods: dict[str, Pod], now: datetime, *, is_complete: bool) -> None:
        """The planner sees these pods, and its status will be stored."""
        seen = {pod.uid for pod in pods.values() if pod.disrupted or pod.deleting is not None}
        if self.since is not None and (now - self.since).total_seconds() >= 60:
            self.close()
        self.must = self.must or bool(seen & {*self.unseen})
        self.unseen = []
        self.since = (self.since or now) if is_complete else None

    def close(self) -> None:
        self.may, self.must, self.since = False, False, None


class History(World):
    """A world in which things go wrong, and which counts the restarts itself."""

    def __init__(self, job: Job, site: Site) -> None:
        super().__init__(job, site)
        self.restarts = self.at_most = self.failures = self.ends = self.due = self.disruptions = 0
        self.forgiveness = Forgiveness()
        self.doomed: set[str] = set()

    def move(self, name: str, number: int, crash: str) -> None:
        if getattr(self, f"do_{name}")(number):
            self.look("")
        self.look(crash)

    def look(self, crash: str) -> None:
        decision, self.due = self.decide(), sum(pod.restart_due for pod in self.pods.values())
        targets = [_target(action) for action in decision.actions]
        assert len(set(targets)) == len(targets), "nothing is done twice"
        if decision.status.is_finished and self.job.run_policy.clean == "Running":
            gone = {action.uid for action in decision.actions if isinstance(action, Delete)}
            ended = {pod.uid for pod in self.pods.values() if pod.deleting is None and _has_ended(pod)}
            assert not gone & ended, "what has ended keeps its log"
        assert decision.wake_after is None or decision.wake_after > 0
        if crash == "before report":
            return
        if crash == "status lost":
            self.apply(decision.actions if decision.urgency != "now" else ())
            return
        was_finished = self.status.is_finished
        self.judge(decision)
        self.report(decision)
        self.doomed |= {a.uid for a in decision.actions if isinstance(a, Delete)}
        done = {"": len(decision.actions), "after report": 0, "half applied": len(decision.actions) // 2}
        self.apply(decision.actions[: done[crash]])
        self.check(was_finished)

    def judge(self, decision: Decision) -> None:
        """Counts the failures that this decision is the first to tell of."""
        asleep = self.job.run_policy.suspend
        self.forgiveness.see(self.pods, self.now, is_complete=self._is_complete())
        self.restarts += self.failures * (not self.forgiveness.may)
        self.at_most += self.failures * (asleep or not self.forgiveness.must)
        if self.ends and not asleep:
            assert self.forgiveness.may or decision.status.is_finished, "a program failed for good"
            assert not self.forgiveness.must or not _has_failed_by_itself(decision), (
                "a program is not at fault"
            )
        self.failures = self.ends = 0
        if asleep or any("failed after it" in event.message for event in decision.events):
            self.forgiveness.close()

    def _is_complete(self) -> bool:
        """Whether all tasks run that have not finished."""
        finished = sum(counts.succeeded for counts in self.status.replica_statuses.values())
        runs = sum(
            pod.phase == "Running" and pod.deleting is None and not pod.program and not pod.restart_due
            for pod in self.pods.values()
        )
        return runs + finished >= self.job.size

    def check(self, was_finished: bool) -> None:
        status, limit = self.status, self.job.run_policy.backoff_limit
        shown = sum(counts.restarts for counts in status.replica_statuses.values())
        assert status.has("Created")
        assert not (status.has("Succeeded") and status.has("Failed"))
        assert status.is_finished == (status.completion_time is not None)
        assert status.is_finished or not was_finished, "an end is final"
        if not status.is_finished:
            assert self.restarts <= shown <= self.at_most
            assert limit is None or self.job.run_policy.suspend or shown <= limit
        elif (
            status.failure is not None and status.failure.cause == "BackoffLimitExceeded" and not was_finished
        ):
            assert limit is not None
            assert self.at_most + self.due > limit

    def choose(self, number: int, *phases: str, leaving: bool = False) -> Pod | None:
        """A pod in one of these phases, of a task that the job has, and that nobody has given up."""
        sizes = {role.name: role.replicas for role in self.job.roles}
        found = [
            pod
            for name, pod in sorted(self.pods.items())
            if pod.phase in phases
            and (pod.deleting is not None) == leaving
            and (leaving or pod.uid not in self.doomed)
            and not pod.program
            and not pod.restart_due
            and pod.task.index < sizes[pod.task.role]
        ]
        return found[number % len(found)] if found else None

    # Each move returns whether the planner must be seen to notice it, since the world will not show it again.

    def do_later(self, number: int) -> bool:
        self.now += timedelta(seconds=10 * number)
        return False

    def do_start(self, _number: int) -> bool:
        self.start()
        return False

    def do_fail(self, number: int) -> bool:
        pod, code = self.choose(number, "Running"), (1, 137)[number % 2]
        if pod is None or self.status.is_finished:
            return False
        self.change(pod.name, phase="Failed", exit_code=code)
        policy = next(role.restart for role in self.job.roles if role.name == pod.task.role)
        self.failures += code in RETRIED_CODES[policy]
        self.ends += code not in RETRIED_CODES[policy]
        return code not in RETRIED_CODES[policy]

    def do_restart(self, number: int) -> bool:
        """In place, by the kubelet: first what waits for that."""
        self.look("")
        due = [pod for pod in self.pods.values() if pod.restart_due and pod.deleting is None]
        pod = due[0] if due else self.choose(number, "Running")
        if pod and self._is_restarted_in_place(pod) and not self.status.is_finished:
            self.change(pod.name, restarts=pod.restarts + 1, restart_due=False)
            self.failures += 1
        return True

    def do_crash(self, number: int) -> bool:
        """The kubelet starts it again, but not yet."""
        pod = self.choose(number, "Running")
        if pod and self._is_restarted_in_place(pod):
            self.change(pod.name, restart_due=True, exit_code=1)
        return False

    def _is_restarted_in_place(self, pod: Pod) -> bool:
        policies = {role.name: role.restart for role in self.job.roles}
        return policies[pod.task.role] in ("Always", "OnFailure")

    def do_finish(self, number: int) -> bool:
        if pod := self.choose(number, "Running"):
            self.change(pod.name, phase="Succeeded", exit_code=0)
        return False

    def do_linger(self, number: int) -> bool:
        """The program ends well, and a sidecar runs on."""
        if pod := self.choose(number, "Running"):
            self.change(pod.name, program="Succeeded", exit_code=0, lingers_since=self.now)
        return False

    def do_lag(self, number: int) -> bool:
        """The program ends well, and the kubelet still calls its pod Running."""
        if pod := self.choose(number, "Running"):
            self.change(pod.name, program="Succeeded", exit_code=0)
        return False

    def do_evict(self, number: int) -> bool:
        if pod := self.choose(number, "Running"):
            self.change(pod.name, phase="Failed", exit_code=(None, 137)[number % 2], disrupted=True)
            self.take(pod)
        return False

    def take(self, pod: Pod) -> None:
        """Counts a task that is taken away; a task without peers is none that others could lose."""
        if self.job.size > 1:
            self.disruptions += 1
            self.forgiveness.take(pod.uid)

    def do_delete(self, number: int) -> bool:
        if pod := self.choose(number, "Running", "Pending", "Succeeded"):
            self.look("")
            if pod.name in self.pods:
                self.delete(pod.name)
                self.take(pod)
        return False

    def do_end(self, number: int) -> bool:
        """A pod that was told to go ends, well or badly, before it is gone."""
        if pod := self.choose(number, "Running", leaving=True):
            self.change(pod.name, phase=("Failed", "Succeeded")[number % 2], exit_code=(143, 0)[number % 2])
        return False

    def do_vanish(self, number: int) -> bool:
        """A pod is removed by force: nobody sees it leave."""
        self.look("")
        if pod := self.choose(number, "Running", "Pending", "Succeeded"):
            del self.pods[pod.name]
            self.take(pod)
        return True

    def do_scale(self, number: int) -> bool:
        self.look("")
        self.start()
        self.look("")
        self.start()
        roles = tuple(
            replace(role, replicas=1 + number % 4) if role.name == WORKER else role for role in self.job.roles
        )
        self.job = replace(self.job, roles=roles, generation=self.job.generation + 1)
        return True

    def do_suspend(self, number: int) -> bool:
        policy = replace(self.job.run_policy, suspend=number % 4 == 1)
        self.job = replace(self.job, run_policy=policy, generation=self.job.generation + 1)
        return False


policies = st.sampled_from(["Always", "OnFailure", "Never", "ExitCode", "OnFailure"])


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    sizes = {
        CHIEF: st.integers(0, 1),
        WORKER: st.integers(1, 4),
        PS: st.integers(0, 2),
        EVALUATOR: st.integers(0, 1),
    }
    roles = [role(name, draw(size), draw(policies)) for name, size in sizes.items()]
    return job(
        *roles,
        success=draw(st.sampled_from(["", "AllWorkers"])),
        clean=draw(st.sampled_from(["None", "Running", "All"])),
        backoff_limit=draw(st.sampled_from([None, 5, 2, 0])),
        deadline=draw(st.sampled_from([None, None, None, 300])),
        suspend=draw(st.integers(0, 7)) == 1,
        services=draw(st.sampled_from([None, "per-replica"])),
    )


moves = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 11), st.sampled_from(CRASHES)), max_size=25)
thorough = settings(max_examples=200, derandomize=True)


sites = st.sampled_from(
    [
        Site(),
        Site(gang=Gang(by="core")),
        Site(gang=Gang(by="volcano", scheduler="volcano")),
        Site(gang=Gang(by="scheduler-plugins", scheduler="together")),
    ]
)


def play(asked: Job, moves: list[tuple[str, int, str]], site: Site) -> History:
    history = History(asked, site)
    for move in moves:
        history.move(*move)
    return history


@thorough
@given(jobs(), moves, sites)
def test_every_history_keeps_its_promises_and_comes_to_rest_once_the_world_is_quiet(
    asked: Job, moves: list[tuple[str, int, str]], site: Site
) -> None:
    history = play(asked, moves, site)
    history.settle()
    rest = history.decide()
    if history.status.has("Failed"):
        assert not any(pod.restart_due for pod in history.pods.values()), "no program is started again"
    assert rest.actions == ()
    assert rest.events == ()
    assert rest.status == history.status
    history.check(history.status.is_finished)


@thorough
@given(jobs(), moves, sites)
def test_every_job_that_has_not_failed_succeeds_when_its_programs_do(
    asked: Job, moves: list[tuple[str, int, str]], site: Site
) -> None:
    history = play(asked, moves, site)
    history.do_suspend(0)
    history.settle()
    for name in history.pods:
        history.change(name, phase="Succeeded", exit_code=0, restart_due=False)
    history.settle()
    assert history.status.phase in ("Succeeded", "Failed")
    assert history.status.has("Failed") == (history.status.failure is not None)


@thorough
@given(jobs(), moves, sites)
def test_looking_twice_without_a_change_decides_nothing_new(
    asked: Job, moves: list[tuple[str, int, str]], site: Site
) -> None:
    """What was decided is still to be done if it was not done; nothing is judged or told a second time."""
    history = play(asked, moves, site)
    first = history.decide()
    history.report(first)
    second = history.decide()
    assert second.status == first.status
    assert second.events == ()
    assert set(map(_target, second.actions)) == set(map(_target, first.actions))
    assert second == replace(history.decide(), urgency=second.urgency)


GANG_MOVES = ("start", "evict", "evict", "finish", "scale", "vanish", "suspend")


@thorough
@given(
    st.integers(2, 4),
    st.lists(
        st.tuples(st.sampled_from(GANG_MOVES), st.integers(0, 11), st.sampled_from(CRASHES)), max_size=12
    ),
    sites,
)
def test_no_pod_waits_for_ever_for_members_of_a_gang(
    size: int, moves: list[tuple[str, int, str]], site: Site
) -> None:
    """Some finish, some are taken away, and the job is scaled or rests: whoever is left gets to run."""
    history = play(job(role(CHIEF), role(WORKER, size, "OnFailure"), success="AllWorkers"), moves, site)
    history.do_suspend(0)
    history.settle()
    waiting = [pod.name for pod in history.pods.values() if pod.phase == "Pending"]
    assert history.status.is_finished or waiting == []


def _has_failed_by_itself(decision: Decision) -> bool:
    return decision.status.failure is not None and decision.status.failure.cause == "TaskFailed"


def _has_ended(pod: Pod) -> bool:
    return pod.phase in ("Succeeded", "Failed") or bool(pod.program) or pod.restart_due


def _target(action: Any) -> tuple[str, str, str]:
    return type(action).__name__, getattr(action, "kind", ""), getattr(action, "name", "")


DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@settings(max_examples=60, derandomize=True)
@given(st.sampled_from(ROLES), st.sampled_from([2, 11, 200]), st.sampled_from(["shared", "per-replica"]))
def test_names_are_dns_labels_for_the_longest_job_that_validation_lets_pass(
    kind: str, replicas: int, services: Any
) -> None:
    longest = "a" * (63 - len(f"-{kind.lower()}-{replicas - 1}"))
    board = TensorBoard(log_dir="/x") if len(longest) + len("-tensorboard") <= 63 else None
    asked = Job(name=longest, roles=(role(kind, replicas),), services=services, tensorboard=board)
    names = [action.name for action in look(asked).actions if isinstance(action, Create)]
    assert max(map(len, names)) <= 63
    assert all(DNS_LABEL.fullmatch(name) for name in names)


@pytest.mark.parametrize("replicas", [1, 3, 50])
def test_the_cost_of_a_decision_is_one_action_for_each_pod_and_one_service(replicas: int) -> None:
    actions = look(job(role(WORKER, replicas))).actions
    assert len(actions) == replicas + (replicas > 1)


@thorough
@given(
    st.lists(
        st.tuples(st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]), st.booleans()),
        max_size=6,
    )
)
def test_any_first_sight_of_any_pods_is_survived(seen: list[tuple[Any, bool]]) -> None:
    """Another operator may have left the world in any state."""
    asked = job(role(WORKER, 3, "OnFailure"), role(PS, 1))
    world = World(asked)
    for index, (phase, disrupted) in enumerate(seen):
        name = f"mnist-worker-{index}"
        world.pods[name] = Pod(
            name=name, uid=name, task=Task(WORKER, index), phase=phase, disrupted=disrupted
        )
    world.settle()
    assert world.decide().actions == ()
