import pytest

from tfyard import errors
from tfyard.cli.problems import WIDTH, format_problem
from tfyard.formats.yaml import source
from tfyard.model.problem import Position, Problem

JOB = """\
spec:
  runPolicy:
    cleanPodPolicy: Al
"""
PATH = ("spec", "runPolicy", "cleanPodPolicy")


def document(text: str) -> source.Document:
    (only,) = source.read(text, "job.yaml")
    return only


def test_a_problem_is_shown_with_its_line_a_caret_and_the_fix() -> None:
    message = '"Al" is not one of All, Running, None; did you mean "All"?'
    problem = Problem(PATH, message, "write All", value="Al")
    assert format_problem(problem, document(JOB)) == (
        f"job.yaml:3:21: error: spec.runPolicy.cleanPodPolicy: {message}\n"
        "        cleanPodPolicy: Al\n"
        "                        ^\n"
        "  fix: write All"
    )


def test_a_warning_about_a_field_points_at_its_key_and_needs_no_fix() -> None:
    problem = Problem(PATH, "unknown field", severity="warning")
    assert format_problem(problem, document(JOB), "other.yaml").splitlines() == [
        "other.yaml:3:5: warning: spec.runPolicy.cleanPodPolicy: unknown field",
        "        cleanPodPolicy: Al",
        "        ^",
    ]


def test_text_that_could_not_be_read_is_shown_from_its_lines() -> None:
    text = b"a: 1\nb: [\xc3\xa9, @\n"
    with pytest.raises(errors.Invalid) as caught:
        source.read(text)
    shown = format_problem(caught.value.problems[0], source.split_lines(text), "x.yaml")
    assert shown.splitlines()[1:3] == ["    b: [é, @", "           ^"]


def test_a_problem_without_a_place_is_one_line() -> None:
    assert format_problem(Problem((), "too large"), [], "x.yaml") == "x.yaml: error: too large"


def test_a_place_outside_of_the_text_shows_no_excerpt() -> None:
    assert format_problem(Problem((), "gone", position=Position(9, 1)), ["a"], "x") == "x:9:1: error: gone"


@pytest.mark.parametrize("column", [1, 50, 500, 2000])
def test_long_lines_are_cut_around_the_column(column: int) -> None:
    line = "".join(chr(ord("a") + n % 26) for n in range(2000))
    _, shown, caret = format_problem(
        Problem((), "here", position=Position(1, column)), [line], "x"
    ).splitlines()
    assert len(shown) <= 4 + WIDTH + 2
    assert shown[caret.index("^")] == line[column - 1]


def test_the_caret_stands_below_wide_and_combining_characters() -> None:
    _, shown, caret = format_problem(
        Problem((), "here", position=Position(1, 6)), ["中文e\u0301 x"], "x"
    ).splitlines()
    assert shown == "    中文e\u0301 x"
    assert caret == "    " + " " * 6 + "^"


def test_control_characters_never_reach_the_terminal() -> None:
    problem = Problem(("\x1b[31m",), "bad \x07", "fix \x1b", position=Position(1, 3))
    shown = format_problem(problem, ["a\x1b[2Jb\tc"], "x\x1b")
    assert all(character.isprintable() for character in shown.replace("\n", ""))
    assert "\\x1b[31m" in shown
