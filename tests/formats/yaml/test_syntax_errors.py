import pytest

from tests.formats.reading import problems
from tfyard.model.problem import Position


@pytest.mark.parametrize(
    ("text", "position", "fix"),
    [
        ("password: **********", Position(1, 11), "quote the value or remove the line"),
        ("a: *none", Position(1, 4), "quote the value or remove the line"),
        ("a: &a [*a]", Position(1, 8), "write the value out"),
        ("a:\n\tb: 1", Position(2, 1), "use spaces"),
        ("a: 1\n\tb: 1", Position(2, 1), "use spaces"),
        ("a: {{ name }}", Position(1, 5), "{{ name }} must be quoted"),
        ("a: {{ x | y(1) }}\nb: [", Position(1, 5), "{{ name }} must be quoted"),
        ("a: @b", Position(1, 4), "quote the value"),
        ("a: b: c", Position(1, 5), "quote the value"),
        ("a: 'b\nc: d\n", Position(1, 4), "close it"),
        ("a:\n  b: 1\n c: 2\n", Position(3, 2), "align it"),
        ("- a\nb: 1\n", Position(2, 1), "start it with -"),
        ("a: [1, 2\nb: 3", Position(1, 4), "close it with ]"),
        ('a: "\\q"', Position(1, 5), "double the backslash"),
        ("a: - b", Position(1, 4), "on the next line"),
        ("a: x\0", Position(1, 5), "UTF-8"),
        ("a: \x1b", Position(1, 4), "remove it"),
        ("a: !!python/object:os.system x", Position(1, 4), "remove !!python/object:os.system"),
        ("a: !!binary aGk=", Position(1, 4), "remove !!binary"),
        ("a: !!seq {}", Position(1, 4), "remove !!seq"),
        ("a: !!int x", Position(1, 4), "remove the tag"),
        ("a: 18446744073709551616", Position(1, 4), "quote it"),
        ("a: -9223372036854775809", Position(1, 4), "quote it"),
        ("a: " + "9" * 5000, Position(1, 4), "quote it"),
        ("<<: 1", Position(1, 5), "quote"),
        ("? [a]\n: 1", Position(1, 3), "write the key as text"),
        ("a: 1\n? " + "k" * 2000 + "\n: 1", Position(2, 3), "shorten it"),
        (b"a: 1\nb: \xff", Position(2, 4), "UTF-8"),
        ("a: 1\nb: \ud800", Position(2, 4), "UTF-8"),
    ],
)
def test_a_syntax_error_has_a_position_and_a_fix(text: str | bytes, position: Position, fix: str) -> None:
    first = problems(text)[0]
    assert first.position == position
    assert fix in first.fix


def test_every_value_masked_with_stars_is_reported_and_what_else_is_wrong() -> None:
    text = "a: ****\nb:\n- ** \n- '*'\ntext: |\n  ****\nc: *****\nd: 1\nd: 2\n"
    reported = problems(text)
    assert [(problem.path, problem.position.line) for problem in reported if problem.position] == [
        (("a",), 1),
        (("b", 0), 3),
        (("c",), 7),
        (("d",), 9),
    ]
    assert [problem.position.line for problem in problems("a: **\nb: 'x\n") if problem.position] == [1, 2]
