"""One step of a sweep, and the loop of steps, in a world of trials that end when the test says so."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.model.sweep import Choice, Objective, Prune, SweepSpec, SweepState, Trial
from tfyard.sweeps.decide import StepPlan, begun, decide, resumed, stopped
from tfyard.sweeps.driver import Driver
from tfyard.sweeps.observing import SeenPhase, TrialSeen
from tfyard.sweeps.search import search

NOW = datetime(2026, 11, 19, tzinfo=UTC)
SPEC = SweepSpec(
    name="s",
    over={"lr": Choice((0.1, 0.01, 0.001)), "batch": Choice((1, 2))},
    objective=Objective("auc", is_max=True),
    trials=6,
    sampler="grid",
)


def seen(trial: Trial, phase: SeenPhase, auc: float | None = 0.5, message: str = "") -> TrialSeen:
    points = () if auc is None else ((1, 0.1), (10, auc))
    return TrialSeen(
        job=f"s-{trial.number}",
        attempt=trial.attempt,
        phase=phase,
        message=message,
        curve=points,
        ended=NOW,
        started=NOW,
        metrics=("auc",) if points else ("loss",),
    )


def step(state: SweepState, world: Mapping[int, TrialSeen] | None = None, now: datetime = NOW) -> StepPlan:
    return decide(state, world or {}, search(state.spec), state.spec.parallel or 2, now)


def after(state: SweepState, *phases: SeenPhase, auc: float | None = 0.5, message: str = "") -> SweepState:
    """The state after each phase was the end of one more trial, one at a time."""
    for phase in phases:
        planned = decide(state, {}, search(state.spec), 1, NOW).state
        trial = planned.trials[-1]
        running = decide(
            planned, {trial.number: seen(trial, "Running", auc)}, search(state.spec), 1, NOW
        ).state
        state = decide(
            running, {trial.number: seen(trial, phase, auc, message)}, search(state.spec), 1, NOW
        ).state
    return state


def test_as_many_trials_as_fit_are_stored_before_they_start_and_are_the_first_of_the_grid() -> None:
    plan = step(begun(SPEC, NOW))
    assert plan.state.trials == plan.start
    assert [trial.values for trial in plan.start] == [{"lr": 0.1, "batch": 1}, {"lr": 0.1, "batch": 2}]


def test_a_step_that_is_repeated_without_a_change_does_nothing() -> None:
    planned = step(begun(SPEC, NOW)).state
    world = {trial.number: seen(trial, "Running") for trial in planned.trials}
    running = step(planned, world).state
    assert step(running, world) == StepPlan(running)


def test_a_trial_that_was_stored_and_never_started_is_started() -> None:
    planned = step(begun(SPEC, NOW)).state
    assert step(planned).start == planned.trials


@pytest.mark.parametrize(("is_best", "value", "at"), [(False, 0.5, 10), (True, 0.9, 1)])
def test_the_objective_is_the_last_value_of_a_trial_or_the_best(is_best: bool, value: float, at: int) -> None:
    spec = replace(SPEC, objective=Objective("auc", is_max=True, is_best=is_best))
    planned = step(begun(spec, NOW)).state
    ended = replace(seen(planned.trials[0], "Succeeded"), curve=((1, 0.9), (10, 0.5)))
    (trial, _, _) = step(planned, {1: ended}).state.trials
    assert (trial.state, trial.objective, trial.at) == ("Succeeded", value, at)


def test_a_trial_that_fails_is_not_tried_again() -> None:
    state = after(begun(SPEC, NOW), "Succeeded", "Failed", message="exit code 3")
    assert (state.trials[1].state, state.trials[1].message) == ("Failed", "exit code 3")
    assert state.phase == "Running"


def test_retry_trials_tries_the_same_values_again_so_often() -> None:
    state = after(begun(replace(SPEC, retry_trials=2), NOW), "Failed")
    values = state.trials[0].values
    for attempt in (2, 3):
        assert (state.trials[0].attempt, state.trials[0].values, state.trials[0].state) == (
            attempt,
            values,
            "Planned",
        )
        state = step(state, {1: seen(state.trials[0], "Failed")}).state
    assert state.trials[0].state == "Failed"


def test_a_trial_that_was_cut_off_is_tried_again_and_that_is_no_failure() -> None:
    state = after(begun(SPEC, NOW), "Cut")
    assert (state.trials[0].state, state.trials[0].attempt, state.trials[0].failures) == ("Planned", 2, 0)


def test_a_trial_whose_job_somebody_deletes_is_given_up() -> None:
    planned = step(begun(SPEC, NOW)).state
    running = step(planned, {trial.number: seen(trial, "Running") for trial in planned.trials}).state
    state = step(running, {1: seen(running.trials[0], "Running")}).state
    assert (state.trials[1].state, state.trials[1].message) == ("Pruned", "its job was deleted")
    assert len(state.trials) == 3


def test_an_answer_about_an_earlier_attempt_is_not_believed() -> None:
    again = after(begun(SPEC, NOW), "Cut")
    first = replace(seen(again.trials[0], "Succeeded"), attempt=1)
    assert step(again, {1: first}).state.trials[0].state == "Planned"


def test_three_failures_before_anything_else_are_a_mistake_and_name_the_first() -> None:
    state = after(begun(SPEC, NOW), "Failed", "Failed", "Failed", message="no such file: /data")
    assert state.phase == "Failed"
    assert state.message == (
        "the first 3 trials have failed; `tfyard why s-001` says why: no such file: /data"
    )


def test_failures_after_a_success_are_part_of_the_search() -> None:
    state = after(begun(SPEC, NOW), "Succeeded", "Failed", "Failed", "Failed", "Failed", "Failed")
    assert (state.phase, state.count("Failed"), state.message) == ("Succeeded", 5, "")


def test_a_metric_that_the_first_trial_never_printed_ends_the_sweep() -> None:
    state = after(begun(SPEC, NOW), "Succeeded", auc=None)
    assert state.phase == "Failed"
    assert "s-1 has ended and printed no metric called 'auc'" in state.message
    assert "loss" in state.message


def test_a_later_trial_without_the_metric_has_failed_and_the_sweep_goes_on() -> None:
    state = after(after(begun(SPEC, NOW), "Succeeded"), "Succeeded", auc=None)
    assert (state.phase, state.trials[1].state, state.trials[1].message) == (
        "Running",
        "Failed",
        "it printed no auc",
    )


@pytest.mark.parametrize(
    ("is_best", "states"), [(False, ["Failed", "Failed"]), (True, ["Failed", "Succeeded"])]
)
def test_a_trial_whose_loss_is_nan_in_the_end_has_failed_and_is_no_mistake_in_the_job(
    is_best: bool, states: list[str]
) -> None:
    state = begun(replace(SPEC, objective=Objective("loss", is_max=False, is_best=is_best)), NOW)
    planned = step(state).state
    only_nan, at_last = (replace(seen(trial, "Succeeded"), lost="nan") for trial in planned.trials)
    after = step(planned, {1: replace(only_nan, curve=(), metrics=("loss",)), 2: at_last}).state
    assert (after.phase, [trial.state for trial in after.trials[:2]]) == ("Running", states)
    assert after.trials[0].message == "its last loss is nan"


def test_no_trial_that_succeeds_is_the_failure_of_the_sweep() -> None:
    state = after(begun(replace(SPEC, trials=2), NOW), "Failed", "Failed", message="no such file: /data")
    says = "no trial has succeeded; `tfyard why s-001` says why: no such file: /data"
    assert (state.phase, state.message) == ("Failed", says)


def test_a_sweep_that_is_out_of_time_stops_what_runs() -> None:
    spec = replace(SPEC, deadline=60, trials=6)
    state = after(begun(spec, NOW), "Succeeded")
    planned = step(state).state
    world = {each.number: seen(each, "Running") for each in planned.trials[1:]}
    plan = step(planned, world, NOW + timedelta(seconds=61))
    assert (plan.state.phase, plan.state.message) == (
        "Succeeded",
        "the deadline was over before 5 of the trials ended",
    )
    assert {trial.number for trial in plan.stop} == set(world)


def test_the_time_in_which_a_sweep_was_stopped_does_not_count() -> None:
    state = stopped(begun(replace(SPEC, deadline=60), NOW), NOW + timedelta(seconds=20), "")
    again = resumed(state, NOW + timedelta(hours=3))
    assert again.due == NOW + timedelta(hours=3, seconds=40)


def test_a_resumed_sweep_runs_again_what_was_cut_off_and_keeps_what_had_ended_before_it_was_asked_to_stop() -> (
    None
):
    planned = decide(begun(SPEC, NOW), {}, search(SPEC), 3, NOW).state
    running = decide(
        planned, {each.number: seen(each, "Running") for each in planned.trials}, search(SPEC), 3, NOW
    )
    again = resumed(stopped(running.state, NOW, ""), NOW)
    one, two, _ = again.trials
    after = decide(again, {1: seen(one, "Succeeded"), 2: seen(two, "Stopped")}, search(SPEC), 3, NOW)
    now = [(trial.state, trial.attempt) for trial in after.state.trials]
    assert now[:3] == [("Succeeded", 1), ("Planned", 2), ("Planned", 2)]
    assert 1 not in {trial.number for trial in after.start}


def test_a_trial_that_is_worse_than_the_others_is_stopped_and_counts_as_pruned() -> None:
    spec = replace(SPEC, prune="median")
    state = after(begun(spec, NOW), *["Succeeded"] * 4)
    planned = decide(state, {}, search(spec), 1, NOW).state
    trial = planned.trials[-1]
    plan = decide(planned, {5: seen(trial, "Running", 0.05)}, search(spec), 1, NOW)
    assert [each.number for each in plan.stop] == [5]
    ended = decide(plan.state, {5: seen(trial, "Stopped", 0.05)}, search(spec), 1, NOW).state
    assert (ended.trials[4].state, ended.trials[4].message) == ("Pruned", "worse than the others at step 10")
    assert ended.best is not None
    assert ended.best.number == 1


@pytest.mark.parametrize("prune", ["median", "asha"])
def test_a_trial_that_leads_at_every_step_is_never_stopped_however_many_points_are_kept(prune: Prune) -> None:
    """The curves of others are thinned out, so they were better at the points that are left of them."""
    spec = replace(SPEC, prune=prune)
    state, rates = begun(spec, NOW), iter((0.90, 0.92, 0.94, 0.96))
    for rate in rates:
        planned = decide(state, {}, search(spec), 1, NOW).state
        ended = replace(seen(planned.trials[-1], "Succeeded"), curve=rising(rate, 60))
        state = decide(planned, {planned.trials[-1].number: ended}, search(spec), 1, NOW).state
    planned = decide(state, {}, search(spec), 1, NOW).state
    for steps in range(1, 61):
        leads = replace(seen(planned.trials[-1], "Running"), curve=rising(0.97, steps))
        assert not decide(planned, {5: leads}, search(spec), 1, NOW).stop, steps


def rising(rate: float, steps: int) -> tuple[tuple[int, float], ...]:
    return tuple((step, rate * step) for step in range(1, steps + 1))


# --- the loop


class Killed(BaseException):
    """The process of the driver was killed."""


class World:
    """The jobs of a sweep and its stored state. They outlive the driver, which may be killed at each write."""

    parallel, look_every = 2, 0.0

    def __init__(self, ends: Mapping[int, SeenPhase], kill_at: int | None) -> None:
        self.ends, self.kill_at = ends, kill_at
        self.stored = begun(SPEC, NOW)
        self.writes = 0
        self.jobs: dict[tuple[int, int], int] = {}
        """(number, attempt) -> looks until its end."""
        self.made = Counter[tuple[int, int]]()
        self.most = 0

    def _write(self) -> None:
        self.writes += 1
        if self.writes == self.kill_at:
            raise Killed

    def save(self, state: SweepState) -> None:
        self._write()
        self.stored = state
        self._write()

    def look(self, state: SweepState) -> Mapping[int, TrialSeen]:
        self.jobs = {key: left - 1 for key, left in self.jobs.items()}
        self.most = max(self.most, sum(left > 0 for left in self.jobs.values()))
        return {
            trial.number: seen(trial, "Running" if left > 0 else self.ends.get(trial.number, "Succeeded"))
            for trial in state.trials
            if (left := self.jobs.get((trial.number, trial.attempt))) is not None
        }

    def start(self, trial: Trial) -> None:
        self._write()
        key = trial.number, trial.attempt
        if key not in self.jobs:
            self.jobs[key] = 1 + trial.number % 3
            self.made[key] += 1
        self._write()

    def stop(self, trial: Trial) -> None:
        self._write()
        self.jobs[trial.number, trial.attempt] = 0

    def is_asked_to_stop(self) -> bool:
        return False


def drive(world: World) -> SweepState:
    return Driver(world.stored, world, search(SPEC), lambda _: None).run()


@given(st.integers(1, 60), st.dictionaries(st.integers(2, 6), st.sampled_from(["Failed", "Succeeded"])))
def test_a_driver_that_is_killed_at_any_write_starts_no_trial_twice_and_forgets_none(
    kill_at: int, ends: dict[int, SeenPhase]
) -> None:
    world = World(ends, kill_at)
    try:
        drive(world)
    except Killed:
        drive(world)
    assert world.made == Counter({(number, 1): 1 for number in range(1, 7)})
    assert world.most <= 2
    assert (world.stored.phase, len(world.stored.trials)) == ("Succeeded", 6)
    assert world.stored.count("Failed") == list(ends.values()).count("Failed")


class Refusing(World):
    def start(self, trial: Trial) -> None:
        if trial.number == 2:
            raise TfyardError("quota exceeded")
        super().start(trial)


def test_a_trial_that_cannot_be_started_has_failed_with_that_message() -> None:
    state = drive(Refusing({}, None))
    assert (state.trials[1].state, state.trials[1].message) == ("Failed", "quota exceeded")
    assert state.count("Succeeded") == 5
