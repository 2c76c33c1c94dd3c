"""Which running trials are stopped because they are worse than the others."""

from typing import Any

import pytest

from tfyard.model.sweep import Choice, Objective, Prune, SweepSpec, Trial, TrialState
from tfyard.sweeps.pruning import is_worse

Curve = tuple[tuple[int, float], ...]


def spec(prune: Prune, *, is_max: bool = True) -> SweepSpec:
    objective = Objective("auc", is_max=is_max)
    return SweepSpec(name="s", over={"x": Choice((1,))}, objective=objective, trials=9, prune=prune)


def trial(number: int, curve: Curve, state: TrialState = "Succeeded") -> Trial:
    return Trial(number=number, values={"x": 1}, state=state, curve=curve)


def line(level: float, steps: int = 10) -> Curve:
    return tuple((step, level) for step in range(1, steps + 1))


def verdict(prune: Prune, others: list[Any], own: Curve, *, is_max: bool = True) -> bool:
    running = trial(99, own, "Running")
    trials = [
        trial(number, each) if isinstance(each, tuple) else each for number, each in enumerate(others, 1)
    ]
    return is_worse(spec(prune, is_max=is_max), running, [*trials, running])


FOUR = [line(0.6), line(0.7), line(0.8), line(0.9)]


@pytest.mark.parametrize(
    ("level", "is_max", "stops"),
    [(0.7, True, True), (0.8, True, False), (0.8, False, True), (0.7, False, False)],
)
def test_median_stops_what_is_worse_than_half_of_the_others(level: float, is_max: bool, stops: bool) -> None:
    assert verdict("median", FOUR, line(level, 3), is_max=is_max) is stops


def test_median_judges_nobody_in_the_first_tenth_of_a_trial() -> None:
    long = [line(level, 100) for level in (0.6, 0.7, 0.8, 0.9)]
    assert not verdict("median", long, line(0.1, 9))
    assert verdict("median", long, line(0.1, 10))


def test_median_waits_for_four_trials_that_have_ended_well() -> None:
    three = FOUR[1:]
    assert not verdict("median", three, line(0.1, 3))
    assert not verdict(
        "median", [*three, trial(4, line(0.9), "Failed"), trial(5, line(0.9), "Running")], line(0.1, 3)
    )


def test_median_compares_at_the_same_step() -> None:
    late = [tuple((step, step / 10) for step in range(1, 11)) for _ in range(4)]
    assert not verdict("median", late, ((1, 0.1),))
    assert verdict("median", late, ((1, 0.1), (5, 0.3)))


def test_median_compares_with_what_was_printed_last_before_where_steps_differ() -> None:
    rare = [((5, 0.5), (10, 0.9))] * 4
    assert not verdict("median", rare, ((7, 0.6),)), "at step 7 the others had 0.5"
    assert verdict("median", rare, ((7, 0.4),))
    assert not verdict("median", rare, ((3, 0.0),)), "at step 3 the others had printed nothing"


def test_a_loss_of_zero_is_the_best_one_and_counts() -> None:
    """Values of 0 are values: the best of the others here."""
    zero = [line(0.0)] * 4
    assert verdict("median", zero, line(0.1, 3), is_max=False)
    assert not verdict("median", zero, line(0.0, 3), is_max=False)
    assert verdict("asha", [line(0.0, 27)] * 3, line(0.1, 9), is_max=False)
    assert not verdict("asha", [line(0.1, 27)] * 3, line(0.0, 9), is_max=False)


def test_negative_values_are_compared_too() -> None:
    assert verdict("asha", [line(-1.0, 27)] * 2, line(-2.0, 9))
    assert not verdict("asha", [line(-1.0, 27)] * 2, line(0.0, 9))


@pytest.mark.parametrize("is_max", [True, False])
def test_asha_lets_the_best_third_of_a_rung_go_on(is_max: bool) -> None:
    sign = 1 if is_max else -1
    others = [line(sign * level, 27) for level in (0.1, 0.2, 0.3, 0.4, 0.5)]
    stopped = [
        level
        for level in (0.05, 0.25, 0.45, 0.55)
        if verdict("asha", others, line(sign * level, 9), is_max=is_max)
    ]
    assert stopped == [0.05, 0.25], "of six, two go on"


def test_asha_judges_only_at_rungs_and_not_before_a_trial_has_ended_well() -> None:
    others = [line(0.9, 27), line(0.8, 27), line(0.7, 27)]
    assert verdict("asha", others, line(0.1, 1)), "27 // 27"
    running = [trial(number, line(0.9, 27), "Running") for number in (1, 2, 3)]
    assert not verdict("asha", running, line(0.1, 9)), "how long a trial lasts is not known yet"
    assert not verdict("asha", others[:1], line(0.1, 9)), "of two, nobody is in the best third"


def test_asha_counts_those_that_were_stopped_at_a_rung_later() -> None:
    others = [line(0.9, 27), trial(2, line(0.2, 9), "Pruned"), trial(3, line(0.1, 9), "Pruned")]
    assert verdict("asha", others, line(0.3, 9))
    assert not verdict("asha", others, line(0.95, 9))


@pytest.mark.parametrize("prune", ["none", "median", "asha"])
def test_nothing_is_stopped_without_pruning_or_before_it_has_printed_anything(prune: Prune) -> None:
    assert not verdict(prune, FOUR, ())
    assert not verdict("none", FOUR, line(0.0, 5))
