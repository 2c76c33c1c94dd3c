"""Sweep files are read as a whole: every problem at once, with its position and its fix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.reading import only
from tfyard.errors import Invalid, Usage
from tfyard.formats import is_job, is_sweep, sweepfile
from tfyard.model import Problem
from tfyard.model.sweep import Choice, Objective, Range, SweepSpec, grid_size, value_text

SMALL = "job: job.yaml\nobjective: max auc\n"


def spec(text: str) -> SweepSpec:
    return sweepfile.load(only(text)).spec


def line_of(problem: Problem) -> int:
    assert problem.position
    return problem.position.line


def said(text: str) -> list[str]:
    """Line, path, message and fix of each problem."""
    return [
        f"{line_of(each)} {'.'.join(map(str, each.path))}: {each.message}; {each.fix}"
        for each in sweepfile.check(only(text)).problems
    ]


def test_the_file_of_the_guide_is_read() -> None:
    text = """
name: cancer-sweep
job: job.yaml
over:
  lr: {from: 1e-4, to: 1e-1, log: true}
  batch: [32, 64, 128]
  layers: {from: 1, to: 4}
objective: max best auc
trials: 24
parallel: 4
prune: median
seed: 3
deadline: 6h
retryTrials: 2
"""
    read = sweepfile.load(only(text))
    assert sweepfile.load({"job": read.job, **sweepfile.words(read.spec)}) == read
    assert sweepfile.words(read.spec)["over"]["batch"] == [32, 64, 128]
    assert read.job == "job.yaml"
    assert read.spec == SweepSpec(
        name="cancer-sweep",
        over={
            "lr": Range(low=0.0001, high=0.1, is_log=True),
            "batch": Choice((32, 64, 128)),
            "layers": Range(low=1, high=4, is_int=True),
        },
        objective=Objective("auc", is_max=True, is_best=True),
        trials=24,
        parallel=4,
        sampler="tpe",
        prune="median",
        seed=3,
        deadline=6 * 3600,
        retry_trials=2,
    )


def test_all_problems_are_reported_at_once_where_they_are() -> None:
    text = """\
name: Cancer_Sweep
over:
  lr: {from: 1e-1, to: 1e-4, log: true}
  learning-rate: [1]
  LR: [1, 1, .nan]
  decay: {from: 0, to: 1, log: true}
  momentum: {from: fast, to: 1}
  empty: []
objective: auc
trials: 1000
parallel: 0
sampler: optuna
prun: median
deadline: soon
"""
    assert said(text) == [
        "1 job: must be given; for example job: job.yaml",
        "1 name: must be lower-case letters, digits and '-', begin with a letter and not end with '-'; for example \"cancer-sweep\"",  # noqa: E501
        "3 over.lr: is empty: from 0.1 to 0.0001; exchange from and to",
        "4 over.learning-rate: must be letters, digits and _, and not begin with a digit; for example learning_rate",  # noqa: E501
        "5 over.LR: differs from lr only in the letter case; rename one",
        "5 over.LR.1: is given twice: programs get 1; keep one of the two",
        "5 over.LR.2: must be a number that is finite; ",
        "6 over.decay.from: must be more than 0 with log; use a small number such as 1e-6, or remove log",
        "7 over.momentum.from: must be a number; for example 0.001 or 1e-3",
        "8 over.empty: must have a value; for example [32, 64]",
        "9 objective: must be max or min, and the name of a metric; for example `max auc`, `min val_loss` or `max best auc`",  # noqa: E501
        "10 trials: must be a number from 1 to 999; ",
        "11 parallel: must be a number of at least 1; ",
        "12 sampler: must be one of grid, random, tpe; ",
        "13 prun: unknown field 'prun'; did you mean prune?",
        '14 deadline: must be a duration; for example 90s, 5m, 1h30m or "2d"',
    ]


def test_a_word_of_the_wrong_type_hides_no_other_problem() -> None:
    problems = said("job: 5\nover: lr\nobjective: auc\ntrials: 3\ndeadline: 0s\n")
    assert [line.split(":")[0] for line in problems] == ["1 job", "2 over", "3 objective", "5 deadline"]


@pytest.mark.parametrize(
    ("over", "problem"),
    [
        (
            "{lr: {from: 1, to: 1}}",
            "3 over.lr: is empty: from 1 to 1; write a list with one value, as in [1]",
        ),
        ("{lr: {from: 0.1, to: 1e999}}", "3 over.lr.to: must be at most 1e+100, and at least -1e+100; "),
        ("{lr: {from: 0.1}}", "3 over.lr.to: must be given; The largest value."),
        ("{lr: {from: true, to: 1}}", "3 over.lr.from: must be a number or text; "),
        ("{lr: [null]}", "3 over.lr.0: must be a number or true or false or text; "),
        ("{lr: [[1]]}", "3 over.lr.0: must be a number or true or false or text; "),
        (
            "{lr: 0.1}",
            "3 over.lr: must be a list or a mapping; for example [32, 64], or {from: 1, to: 4}",
        ),
        ("{lr: [1, '1']}", "3 over.lr.1: is given twice: programs get 1; keep one of the two"),
        ("{lr: ['true', true]}", "3 over.lr.1: is given twice: programs get true; keep one of the two"),
        ("{}", "3 over: must name a parameter; for example over: {lr: {from: 1e-4, to: 1e-1, log: true}}"),
    ],
)
def test_a_parameter_that_cannot_be_searched_says_why(over: str, problem: str) -> None:
    assert said(f"{SMALL}over: {over}\ntrials: 3\n") == [problem]


def test_trials_may_be_left_out() -> None:
    assert spec(SMALL + "over: {a: [1, 2], b: [x, y, z]}").trials == 6
    assert spec(SMALL + "over: {a: {from: 1, to: 4}, b: [1]}\nsampler: grid").trials == 4
    assert spec(SMALL + "over: {a: {from: 0.0, to: 1}}").trials == 20
    assert spec(SMALL + "over: {a: {from: 1, to: 4}}").trials == 4, "there are no more combinations"
    many = said(SMALL + "over: {a: {from: 1, to: 1000}}\nsampler: grid")
    assert many == [
        "1 trials: must be given: there are 1,000 combinations, and at most 999 trials;"
        " for example trials: 100, with the sampler random"
    ]


def test_a_grid_over_a_range_without_end_is_refused() -> None:
    text = SMALL + "over: {lr: {from: 0.1, to: 1}}\nsampler: grid\ntrials: 3"
    fix = "give a list of values, or use the sampler random or tpe"
    assert said(text) == [f"3 over.lr: has no end of values, and the sampler grid tries all of them; {fix}"]


def test_a_grid_has_no_more_trials_than_combinations() -> None:
    assert spec(SMALL + "over: {a: [1, 2]}\ntrials: 50").trials == 2
    assert spec(SMALL + "over: {a: [1, 2]}\ntrials: 50\nsampler: random").trials == 50


def test_combinations_are_counted_without_making_them() -> None:
    over = spec(SMALL + "over: {a: {from: 1, to: 1000000000000}, b: [1, 2]}\ntrials: 9").over
    assert grid_size(over) == 2 * 10**12


def test_numbers_are_numbers_however_they_are_written() -> None:
    read = spec(SMALL + "over: {a: {from: 1e-4, to: '1E2'}, b: [1e-4, '007', true, x]}\ntrials: 3").over
    assert read == {"a": Range(low=0.0001, high=100.0), "b": Choice((0.0001, "007", True, "x"))}


def test_programs_get_the_values_of_a_list_as_they_are() -> None:
    values = (0.123456789, 1e-05, 64, True, False, "1e-4", "", "a b")
    texts = ["0.123456789", "1e-05", "64", "true", "false", "1e-4", "", "a b"]
    assert [value_text(value) for value in values] == texts


@given(
    st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(1e-3, 1e6, allow_subnormal=False), st.floats(0, 1)
)
def test_a_value_of_a_range_is_in_it_and_its_text_says_exactly_it(
    low: float, width: float, at: float
) -> None:
    searched = Range(low=low, high=low + width)
    value = searched.of(low + at * width)
    assert searched.low <= value <= searched.high  # type: ignore[operator]
    assert float(value_text(value)) == value


def test_a_narrow_range_keeps_its_values_apart() -> None:
    searched = Range(low=1_000_000.0, high=1_000_001.0)
    assert searched.of(1_000_000.25) == 1_000_000.25
    assert Range(low=0.0001, high=0.1).of(0.012345678912) == 0.0123457


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("lr=1e-4..1e-1:log", "lr", {"from": "1e-4", "to": "1e-1", "log": True}),
        ("layers=1..4", "layers", {"from": "1", "to": "4", "log": False}),
        ("x=-1..-0.5", "x", {"from": "-1", "to": "-0.5", "log": False}),
        ("batch=32,64", "batch", [32, 64]),
        ("lr=0.1", "lr", [0.1]),
        ("seed=007,7", "seed", ["007", 7]),
        ("id=99999999999999999999", "id", ["99999999999999999999"]),
        ("hash=12e9999", "hash", ["12e9999"]),
        ("on=true,false", "on", [True, False]),
        ("data=../a,../b", "data", ["../a", "../b"]),
        ("opt=a=b", "opt", ["a=b"]),
    ],
)
def test_over_as_an_option_means_what_the_file_means(text: str, name: str, words: object) -> None:
    assert sweepfile.over_words(text) == (name, words)


@pytest.mark.parametrize("text", ["lr", "lr=", "=1", "lr=1..2:lin", "lr=1,,2", "lr=1,"])
def test_a_malformed_option_is_a_mistake_of_the_user(text: str) -> None:
    with pytest.raises(Usage, match="--over"):
        sweepfile.over_words(text)


def test_a_name_that_leaves_no_room_for_its_pods_is_too_long() -> None:
    (problem,) = sweepfile.check(only(f"name: {'a' * 60}\n{SMALL}over: {{a: [1]}}")).problems
    assert (problem.path, problem.fix) == (("name",), "use at most 54 characters")


def test_a_file_that_is_no_mapping_is_told_so() -> None:
    with pytest.raises(Invalid, match="must be a mapping"):
        sweepfile.load(only("- over"))


def test_a_sweep_file_is_told_from_a_job_file_also_if_over_is_missing() -> None:
    assert is_sweep({"job": "a", "objective": "max a"})
    assert not is_job({"job": "a", "objective": "max a"})
    assert not is_sweep({"name": "a", "run": "b"})
