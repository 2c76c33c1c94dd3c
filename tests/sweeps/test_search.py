"""Which values come next: by grid, by chance and by Optuna, also after the driver was killed."""

import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState as OptunaState

from tests.cli.running import without
from tfyard.model.sweep import Choice, Objective, Range, Sampler, SweepSpec, Trial, TrialState, Values
from tfyard.sweeps import optuna_search
from tfyard.sweeps.search import ValueSearch, search

OVER = {
    "lr": Range(1e-4, 1e-1, is_log=True),
    "batch": Choice((16, 32, 64)),
    "layers": Range(1, 4, is_int=True),
    "drop": Range(0.0, 0.5),
}


def spec(sampler: Sampler = "tpe", *, trials: int = 12, is_max: bool = True, **words: Any) -> SweepSpec:
    return SweepSpec(
        name="s",
        **{"over": OVER, **words},
        objective=Objective("auc", is_max=is_max),
        trials=trials,
        sampler=sampler,
    )


def score(values: Values) -> float:
    return -abs(float(values["lr"]) - 0.01) - abs(int(values["layers"]) - 3)


def ended(trial: Trial, state: TrialState = "Succeeded") -> Trial:
    value = score(trial.values)
    return Trial(
        number=trial.number,
        values=trial.values,
        state=state,
        objective=value,
        at=2,
        curve=((1, value / 2), (2, value)),
    )


def one_by_one(searched: ValueSearch, trials: list[Trial], until: int) -> list[Trial]:
    """The trials after these, each ended before the next one begins."""
    trials = [*trials]
    while len(trials) < until:
        number = len(trials) + 1
        trials.append(Trial(number=number, values=searched.values(number, trials), state="Running"))
        searched.learn(trials)
        trials[-1] = ended(trials[-1])
        searched.learn(trials)
    return trials


def test_a_grid_has_each_combination_once() -> None:
    over = {"a": Choice((1, "x", True)), "b": Range(3, 6, is_int=True)}
    searched = search(spec("grid", over=over))
    chosen = [searched.values(number, ()) for number in range(1, 13)]
    assert [(each["a"], each["b"]) for each in chosen] == list(product((1, "x", True), (3, 4, 5, 6)))


def test_a_seed_puts_the_grid_in_another_order_that_is_always_the_same() -> None:
    over = {"a": Choice(tuple(range(5))), "b": Choice(tuple(range(5)))}
    first, again, other, plain = (
        [
            tuple(search(spec("grid", trials=25, over=over, seed=seed)).values(n, ()).values())
            for n in range(1, 26)
        ]
        for seed in (1, 1, 2, None)
    )
    assert first == again != other
    assert sorted(first) == sorted(other) == plain  # type: ignore[type-var]


def test_a_grid_with_more_combinations_than_memory_is_searched_in_part() -> None:
    over = {name: Range(1, 1e9, is_int=True) for name in "abcdef"}
    searched = search(spec("grid", trials=20, over=over, seed=1))
    assert len({tuple(searched.values(number, ()).values()) for number in range(1, 21)}) == 20


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_all_values_are_in_their_ranges(sampler: Sampler) -> None:
    searched = search(spec(sampler, seed=1))
    trials = one_by_one(searched, [], 40)
    for each in (trial.values for trial in trials):
        assert 1e-4 <= float(each["lr"]) <= 1e-1
        assert each["batch"] in (16, 32, 64)
        assert each["layers"] in (1, 2, 3, 4)
        assert isinstance(each["layers"], int)
        assert 0 <= float(each["drop"]) <= 0.5
    assert {trial.values["layers"] for trial in trials} == {1, 2, 3, 4}
    assert min(float(trial.values["lr"]) for trial in trials) < 1e-3, (
        "orders of magnitude are searched evenly"
    )


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_a_seed_gives_the_same_values_again_also_after_a_resume(sampler: Sampler, tmp_path: Path) -> None:
    whole = one_by_one(search(spec(sampler, seed=7), tmp_path / "a"), [], 20)
    again = one_by_one(search(spec(sampler, seed=7), None), [], 20)
    half = one_by_one(search(spec(sampler, seed=7), tmp_path / "b"), [], 13)
    resumed = one_by_one(search(spec(sampler, seed=7), tmp_path / "b"), half, 20)
    other = one_by_one(search(spec(sampler, seed=8), None), [], 20)
    assert whole == again == resumed != other


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_without_a_seed_a_resume_goes_on_with_values_that_were_not_tried(sampler: Sampler) -> None:
    trials = one_by_one(search(spec(sampler)), [], 10)
    trials = one_by_one(search(spec(sampler)), trials, 20)
    assert len({tuple(trial.values.values()) for trial in trials}) == 20


def test_tpe_learns_from_earlier_trials() -> None:
    trials = one_by_one(search(spec(seed=1)), [], 60)
    late = [score(trial.values) for trial in trials[40:]]
    early = [score(trial.values) for trial in trials[:20]]
    assert sum(late) > sum(early)
    lower = spec(is_max=False, seed=1)
    searched = search(lower)
    worst = one_by_one(searched, [], 60)
    assert sum(score(trial.values) for trial in worst[40:]) < sum(late)


def test_trials_that_run_at_the_same_time_get_different_values() -> None:
    over = {"x": Range(0.0, 1.0)}
    searched = search(spec(over=over, seed=2))
    done = [
        Trial(number=n, values={"x": n / 20}, state="Succeeded", objective=-abs(n / 20 - 0.5))
        for n in range(1, 20)
    ]
    for number in range(20, 26):
        done.append(Trial(number=number, values=searched.values(number, done), state="Running"))
    running = sorted(float(trial.values["x"]) for trial in done[19:])
    assert min(b - a for a, b in pairwise(running)) > 0


def test_values_that_optuna_takes_for_the_same_are_told_apart() -> None:
    over = {"x": Choice((1, True, 1.0, "true ", "1 ")), "y": Choice(("a",))}
    trials = list[Trial]()
    searched = search(spec(over=over, seed=1))
    for number in range(1, 60):
        trials.append(
            Trial(number=number, values=searched.values(number, trials), state="Succeeded", objective=1.0)
        )
    texts = {repr(trial.values["x"]) for trial in trials}
    assert texts == {"1", "True", "1.0", "'true '", "'1 '"}


def opened(path: Path) -> optuna.Study:
    """The study as optuna-dashboard opens it."""
    return optuna.load_study(study_name="s", storage=JournalStorage(JournalFileBackend(str(path))))


def test_the_journal_has_every_trial_with_its_values_and_its_state(tmp_path: Path) -> None:
    path = tmp_path / "optuna.log"
    searched = search(spec(trials=6), path)
    trials = one_by_one(searched, [], 2)
    states: tuple[TrialState, ...] = ("Failed", "Pruned", "Running", "Planned", "Stopped")
    for number, state in enumerate(states, 3):
        begun = Trial(number=number, values=searched.values(number, trials))
        trials.append(begun)
        searched.learn(trials)
        trials[-1] = (
            ended(begun, state)
            if state in ("Pruned", "Failed")
            else Trial(number=number, values=begun.values, state=state)
        )
        searched.learn(trials)
    study = opened(path)
    assert [trial.user_attrs["trial"] for trial in study.trials[:2]] == ["s-001", "s-002"]
    assert [trial.params for trial in study.trials] == [trial.values for trial in trials]
    complete, fail = OptunaState.COMPLETE, OptunaState.FAIL
    assert [trial.state for trial in study.trials] == [
        *(complete, complete, fail, OptunaState.PRUNED, OptunaState.RUNNING, OptunaState.RUNNING, fail),
    ]
    assert [trial.value for trial in study.trials[:2]] == [trial.objective for trial in trials[:2]]
    assert study.trials[3].intermediate_values == dict(trials[3].curve)
    assert study.best_value == max(score(trial.values) for trial in trials[:2])


def test_the_journal_is_written_anew_by_the_next_driver_also_if_the_last_one_was_killed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "optuna.log"
    trials = one_by_one(search(spec(), path), [], 3)
    path.with_name("optuna.log.lock").symlink_to(path)
    path.write_bytes(path.read_bytes()[:-5])
    one_by_one(search(spec(), path), trials, 5)
    assert len(opened(path).trials) == 5


def test_importances_say_which_parameter_decides() -> None:
    trials = [ended(trial) for trial in one_by_one(search(spec("random", seed=1)), [], 60)]
    found = optuna_search.importances(spec(), trials)
    assert max(found, key=lambda name: found[name]) == "layers"
    assert optuna_search.importances(spec(), trials[:1]) == {}
    same = [Trial(number=t.number, values=t.values, state="Succeeded", objective=1.0) for t in trials]
    assert optuna_search.importances(spec(), same) == {}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--over", "lr=0.1..1"), 'pip install "tfyard[sweep]"'),
        (("--over", "lr=1,2", "--sampler", "tpe"), "`sampler: random` works as it is"),
    ],
)
def test_without_optuna_the_message_names_the_extra(
    tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    (tmp_path / "t.py").write_text("print('step 1 auc 0.5')")
    program = without("optuna")
    words = ("sweep", "t.py", *options, "--objective", "max auc", "--trials", "2")
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode != 0
    assert says in done.stderr
    assert not (tmp_path / ".tfyard" / "sweeps").exists()
