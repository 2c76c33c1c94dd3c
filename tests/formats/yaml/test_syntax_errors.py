import pytest

from tests.formats.reading import problems
from tfyard.model.problem import Place


@pytest.mark.parametrize(
    ("text", "place", "fix"),
    [
        ("password: **********", Place(1, 11), "quote the value or remove the line"),
        ("a: *none", Place(1, 4), "quote the value or remove the line"),
        ("a: &a [*a]", Place(1, 8), "write the value out"),
        ("a:\n\tb: 1", Place(2, 1), "use spaces"),
        ("a: 1\n\tb: 1", Place(2, 1), "use spaces"),
        ("a: {{ name }}", Place(1, 5), "{{ name }} must be quoted"),
        ("a: {{ x | y(1) }}\nb: [", Place(1, 5), "{{ name }} must be quoted"),
        ("a: @b", Place(1, 4), "quote the value"),
        ("a: b: c", Place(1, 5), "quote the value"),
        ("a: 'b\nc: d\n", Place(1, 4), "close it"),
        ("a:\n  b: 1\n c: 2\n", Place(3, 2), "align it"),
        ("- a\nb: 1\n", Place(2, 1), "start it with -"),
        ("a: [1, 2\nb: 3", Place(1, 4), "close it with ]"),
        ('a: "\\q"', Place(1, 5), "double the backslash"),
        ("a: - b", Place(1, 4), "on the next line"),
        ("a: x\0", Place(1, 5), "UTF-8"),
        ("a: \x1b", Place(1, 4), "remove it"),
        ("a: !!python/object:os.system x", Place(1, 4), "remove !!python/object:os.system"),
        ("a: !!binary aGk=", Place(1, 4), "remove !!binary"),
        ("a: !!seq {}", Place(1, 4), "remove !!seq"),
        ("a: !!int x", Place(1, 4), "remove the tag"),
        ("a: 18446744073709551616", Place(1, 4), "quote it"),
        ("a: -9223372036854775809", Place(1, 4), "quote it"),
        ("a: " + "9" * 5000, Place(1, 4), "quote it"),
        ("<<: 1", Place(1, 5), "quote"),
        ("? [a]\n: 1", Place(1, 3), "write the key as text"),
        ("a: 1\n? " + "k" * 2000 + "\n: 1", Place(2, 3), "shorten it"),
        (b"a: 1\nb: \xff", Place(2, 4), "UTF-8"),
        ("a: 1\nb: \ud800", Place(2, 4), "UTF-8"),
    ],
)
def test_what_goes_wrong_is_told_with_its_place_and_a_fix(text: str | bytes, place: Place, fix: str) -> None:
    found = problems(text)[0]
    assert found.place == place
    assert fix in found.fix
