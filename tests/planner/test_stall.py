"""Stalls: nobody has heard of the task that decides for as long as the job allows."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tfyard.model import WORKER, Decision, Job, LastLine, LogLook, Observed, Pod, Role, Stall, Status
from tfyard.planner import Site

from .builders import (
    NOTHING,
    at,
    begun,
    created,
    deleted,
    evaluator,
    job,
    look,
    pod,
    role,
    servers,
    shown,
    told,
    workers,
)
from .world import World

QUARTER_HOUR = Stall(after=900)
RESTARTING = Stall(after=900, then="restart")


def running(name: str, since: float = 0, **fields: Any) -> Pod:
    return pod(name, running_since=at(since), **{"ready": True, **fields})


def asked(*roles: Role, stall: Stall = QUARTER_HOUR, **fields: Any) -> Job:
    return job(*(roles or (workers(2),)), stall=stall, **fields)


TWO = (running("worker-0"), running("worker-1"))


def hear(
    name: str, seen: float, said: float | None = None, text: str = "", **fields: Any
) -> dict[str, LastLine]:
    when = None if said is None else at(said)
    return {f"{name}#0": LastLine(seen=at(seen), at=when, text=text, **fields)}


def after(
    seconds: float, lines: Any = None, *, pods: tuple[Pod, ...] = TWO, status: Status = NOTHING, **fields: Any
) -> Decision:
    wanted = fields.pop("job", None) or asked(**fields)
    known = status if status.conditions else begun(wanted, *pods)
    return look(wanted, *pods, status=known, now=at(seconds), lines=lines or {})


def test_nothing_is_asked_of_jobs_that_do_not_want_it() -> None:
    decision = look(job(workers(2)), *TWO, status=begun(job(workers(2)), *TWO), now=at(90_000))
    assert (decision.look, decision.wake_after, shown(decision.status)[-1]) == (
        None,
        None,
        "Running=True (TFJobRunning)",
    )


def test_the_log_of_the_task_that_decides_is_looked_at_when_it_could_show_a_stall_and_no_sooner() -> None:
    early = after(300)
    assert (early.look, early.wake_after) == (None, 600)
    due = after(900)
    assert due.look == LogLook("mnist-worker-0", "worker-0#0", "tensorflow")
    assert not due.status.has("Stalled"), "nobody has looked yet"
    heard = after(900, hear("worker-0", 900, 890, "step 7"))
    assert (heard.look, heard.wake_after, heard.status.has("Stalled")) == (None, 890, False)
    old = after(1800, hear("worker-0", 900, 890, "step 7"))
    assert old.look is not None
    assert not old.status.has("Stalled"), "the look is older than what it should show"


@pytest.mark.parametrize(
    ("line", "least"),
    [({}, 15), ({"said": 599}, 15), ({"problem": "unreadable"}, 15), ({"problem": "forbidden"}, 300)],
)
def test_a_log_is_looked_at_every_15_seconds_at_most_and_far_less_often_while_that_is_forbidden(
    line: dict[str, Any], least: int
) -> None:
    """Whatever the job says: each look costs a kubelet a request, and users write the annotation."""
    wanted, now, looks, lines = asked(stall=Stall(after=1)), 600.0, list[float](), dict[str, LastLine]()
    while now < 1200:
        decision = after(now, lines, job=wanted)
        if decision.look is not None:
            looks.append(now)
            lines = hear("worker-0", now, **line)
        now += decision.wake_after or 0.1
    assert len(looks) > 1
    assert min(b - a for a, b in pairwise(looks)) >= least


def test_a_silence_that_is_too_long_is_the_condition_stalled_until_there_are_lines_again() -> None:
    silent = after(1000, hear("worker-0", 995, 60, "Epoch 3/10"))
    assert silent.status.phase == "Stalled"
    text = "worker-0 has written no line for more than 15m; the last one, at 2026-03-04T05:07:07Z: Epoch 3/10"
    assert told(silent) == [("Warning", "NoOutput", text)]
    assert (deleted(silent), silent.wake_after) == ([], 220), "the next look comes a quarter later"
    still = after(1221, hear("worker-0", 1220, 60, "Epoch 3/10"), status=silent.status)
    assert (still.status, still.events) == (silent.status, ()), "a status is not written for each look"
    again = after(1500, hear("worker-0", 1450, 1449, "Epoch 4/10"), status=still.status)
    assert told(again) == [("Normal", "GoesOn", "TFJob lab/mnist does not stall any more.")]
    assert again.status.phase == "Running"
    assert shown(again.status)[0] == "Stalled=False (GoesOn)"


def test_a_program_that_has_never_written_a_line_stalls_too() -> None:
    silent = after(1000, hear("worker-0", 995))
    (stalled,) = [c for c in silent.status.conditions if c.type == "Stalled"]
    assert stalled.message == (
        "worker-0 has written no line for more than 15m, and none since all tasks ran at 2026-03-04T05:06:07Z"
    )


NOT_YET = {
    "it was restarted in place": (running("worker-0", 500, restarts=1), running("worker-1")),
    "a peer has just come back": (running("worker-0"), running("worker-1", 500)),
    "a peer is away": (running("worker-0"),),
    "a peer waits for a node": (running("worker-0"), pod("worker-1", "Pending")),
    "a peer crashes": (running("worker-0"), running("worker-1", restart_due=True, restarts=1)),
    "its init container runs": (pod("worker-0"), running("worker-1")),
}


@pytest.mark.parametrize("seen", NOT_YET.values(), ids=NOT_YET)
def test_the_clock_starts_anew_with_each_start_and_waits_for_peers(seen: tuple[Pod, ...]) -> None:
    wanted = asked(workers(2, "OnFailure"), stall=RESTARTING)
    decision = look(
        wanted, *seen, status=begun(wanted, *TWO), now=at(1000), lines=hear("worker-0", 999, 60, "a")
    )
    assert (decision.look, decision.status.condition("Stalled"), deleted(decision)) == (None, None, [])


def test_evaluators_and_elastic_workers_come_and_go_without_the_clock() -> None:
    evaluated, one = asked(workers(1), evaluator("OnFailure")), running("worker-0")
    late = look(evaluated, one, pod("evaluator-0", "Pending"), status=begun(evaluated, one), now=at(901))
    assert late.look is not None
    elastic = asked(workers(2), servers(1), dynamic_workers=True)
    assert look(elastic, one, running("ps-0"), status=begun(elastic, one), now=at(901)).look is not None


def test_the_first_task_that_has_not_finished_decides_from_the_moment_when_the_one_before_has() -> None:
    done = pod("worker-0", "Succeeded", exit_code=0, run_ended=at(880))
    pods = (done, running("worker-1"))
    wanted = asked(success="AllWorkers")
    assert after(1000, pods=pods, job=wanted).wake_after == 780
    late = after(1780, pods=pods, job=wanted)
    assert late.look == LogLook("mnist-worker-1", "worker-1#0", "tensorflow")


def test_an_operator_that_may_not_read_logs_says_so_once_with_the_fix() -> None:
    decision = after(900, hear("worker-0", 900, problem="forbidden"))
    ((level, reason, text),) = told(decision)
    assert (level, reason) == ("Warning", "LogsForbidden")
    assert "`get pods/log` in namespace lab" in text
    assert "`tfyard install --read-logs`" in text
    assert shown(decision.status)[0] == "Stalled=False (LogsForbidden)"
    later = after(1200, hear("worker-0", 1125, problem="forbidden"), status=decision.status)
    assert (later.events, later.status, later.wake_after) == ((), decision.status, 225)
    fresh = after(1300, pods=(running("worker-0", 1299), running("worker-1")), status=decision.status)
    assert fresh.status == decision.status, "that a task starts does not grant it"
    granted = after(1350, hear("worker-0", 1350, 1349, "step 9"), status=decision.status)
    assert told(granted) == [("Normal", "GoesOn", "TFJob lab/mnist does not stall any more.")]


def test_a_look_that_fails_changes_nothing() -> None:
    silent = after(1000, hear("worker-0", 995, 60, "Epoch 3/10"))
    lost = after(1300, hear("worker-0", 1220, problem="unreadable"), status=silent.status)
    assert (lost.status, lost.events, lost.wake_after) == (silent.status, (), 145)
    never = after(1000, hear("worker-0", 995, problem="unreadable"))
    assert (never.status.condition("Stalled"), never.wake_after) == (None, 220)


def test_all_tasks_start_again_together_and_that_is_one_retry_under_every_policy() -> None:
    wanted = asked(workers(2), servers(1), stall=RESTARTING, backoff_limit=1)
    pods = (*TWO, running("ps-0"))
    stalled = after(1000, hear("worker-0", 999, 60, "Epoch 3/10"), pods=pods, job=wanted)
    assert sorted(deleted(stalled)) == ["mnist-ps-0", "mnist-worker-0", "mnist-worker-1"]
    assert (stalled.status.restarts, stalled.status.phase, stalled.urgency) == (1, "Restarting", "now")
    ((_, reason, text),) = told(stalled)
    assert reason == "TFJobRestarting"
    assert text == (
        "job mnist is restarting because worker-0 has written no line for more than 15m; the last one, at"
        " 2026-03-04T05:07:07Z: Epoch 3/10. All tasks start again together, which is one retry."
    )
    (ending,) = stalled.status.endings
    assert (ending.task, ending.attempt, ending.reason, ending.message) == (
        "worker-0",
        1,
        "Stalled",
        "Epoch 3/10",
    )
    leaving = [replace(each, deleting=at(1030), asked_to_stop=True) for each in pods]
    gone = look(wanted, *leaving[:2], status=stalled.status, now=at(1010))
    assert (created(gone), gone.status.restarts) == ([], 1), "two starts never meet"
    fresh = look(wanted, status=gone.status, now=at(1020))
    assert sorted(created(fresh)) == ["mnist-ps-0", "mnist-worker-0", "mnist-worker-1"]


def test_a_stall_beyond_the_limit_fails_the_job_and_ends_its_programs() -> None:
    decision = after(1000, hear("worker-0", 999, 60, "Epoch 3/10"), stall=RESTARTING, backoff_limit=0)
    failure = decision.status.failure
    assert failure is not None
    assert (failure.cause, failure.task) == ("BackoffLimitExceeded", "worker-0")
    assert failure.message.endswith("(0 restarts allowed): worker-0 stalled: Epoch 3/10")
    assert [ending.reason for ending in decision.status.endings] == ["Stalled"]
    condition = decision.status.condition("Stalled")
    assert condition is not None
    assert (condition.status, condition.reason, "restarting" in condition.message) == (
        "False",
        "NoOutput",
        False,
    )
    assert sorted(deleted(decision)) == ["mnist-worker-0", "mnist-worker-1"], "they would hang for ever"


def test_a_stop_and_an_end_are_no_stall_any_more() -> None:
    silent = after(1000, hear("worker-0", 995, 60, "Epoch 3/10")).status
    stopped = after(1100, job=asked(suspend=True), status=silent)
    assert (stopped.status.has("Stalled"), stopped.status.phase) == (False, "Suspended")
    done = (pod("worker-0", "Succeeded", exit_code=0), running("worker-1"))
    assert not after(1100, pods=done, status=silent).status.has("Stalled")


def test_upstream_knows_no_stalls() -> None:
    wanted, site = asked(stall=RESTARTING), Site(kubeflow=True)
    known = begun(wanted, *TWO, site=site)
    assert look(wanted, *TWO, status=known, now=at(5000), site=site).look is None


# --- random worlds


class StallWorld(World):
    """Programs that print now and then, and an operator that looks at one log at a time and may be killed."""

    AFTER = timedelta(seconds=900)

    def __init__(self, wanted: Job) -> None:
        super().__init__(wanted)
        self.said: dict[str, Any] = {}
        self.lines: dict[str, LastLine] = {}
        self.looks: list[Any] = []
        self.stalls = self.crashes = 0

    def observe(self) -> Observed:
        return replace(super().observe(), lines=self.lines)

    def turn(self, crash: str) -> None:
        decision = self.decide()
        before = self.status
        self.looks = [] if crash else self.looks
        if crash == "killed before":
            self.lines = {}
            return
        self.report(decision)
        self.apply(() if crash == "killed after" else decision.actions)
        stalled = [event for event in decision.events if "has written no line" in event.message]
        self.stalls += any(event.reason == "TFJobRestarting" for event in stalled)
        assert not stalled or self._is_silent(), "a program that goes on is left alone"
        assert decision.status == before or decision.events or decision.actions or not before.has("Stalled")
        self.lines = {} if crash else self.lines
        if decision.look and not crash:
            assert (
                not self.looks
                or self.looks[-1][0] != decision.look.uid
                or (self.now - self.looks[-1][1] >= self.AFTER / 4)
            )
            self.looks.append((decision.look.uid, self.now))
            at_ = self.said.get(decision.look.uid)
            self.lines = {decision.look.uid: LastLine(seen=self.now, at=at_, text="step" if at_ else "")}
            self.turn("")

    def _is_silent(self) -> bool:
        running = [each for each in self.pods.values() if each.running_since]
        heard = [self.said.get(each.uid) for each in running if each.task.index == 0]
        times = [each.running_since for each in running] + heard
        return self.now - max(time for time in times if time) >= self.AFTER

    def do(self, move: str) -> None:
        if move == "print":
            self.said |= {each.uid: self.now for each in self.pods.values() if each.running_since}
        elif move == "start":
            self.start()
        elif move == "crash":
            name = f"mnist-worker-{len(self.said) % 2}"
            if name in self.pods and self.pods[name].phase == "Running" and not self.pods[name].deleting:
                self.change(name, phase="Failed", exit_code=1, running_since=None)
                self.crashes += 1
        else:
            self.now += timedelta(seconds=int(move))


MOVES = st.tuples(
    st.sampled_from(["print", "print", "start", "start", "crash", "60", "230", "500", "1000"]),
    st.sampled_from(["", "", "", "killed before", "killed after"]),
)


@settings(max_examples=300, derandomize=True)
@given(st.lists(MOVES, max_size=40), st.sampled_from(["report", "restart"]))
def test_whatever_happens_a_silence_is_one_restart_and_a_program_that_prints_is_none(
    moves: list[tuple[str, str]], then: Any
) -> None:
    world = StallWorld(job(role(WORKER, 2, "OnFailure"), stall=Stall(after=900, then=then)))
    for move, crash in moves:
        world.do(move)
        world.turn(crash)
        world.turn("")
    assert then == "restart" or world.stalls == 0
    assert world.status.restarts == world.stalls + world.crashes
