import tracemalloc

import pytest
import yaml

from tests.formats.reading import only, problem, problems, refusal
from tfyard import errors
from tfyard.formats.yaml import compose, source


def peak_bytes(text: str | bytes) -> int:
    """Memory that reading takes beyond the text itself, whether it is refused or not."""
    tracemalloc.start()
    try:
        refusal(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BILLION_LAUGHS = "a0: &a0 [lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)
MAP_BOMB = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{x: *a{n - 1}, w: *a{n - 1}}}\n" for n in range(1, 60))
MERGE_BOMB = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: *a{n - 1}}}\n" for n in range(1, 60)
)
TEXT_BOMB = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
DEPTH_BOMB = "a0: &a0 []\n" + "".join(f"a{n}: &a{n} [[[[[[[[*a{n - 1}]]]]]]]]\n" for n in range(1, 60))


@pytest.mark.parametrize("bomb", [BILLION_LAUGHS, MAP_BOMB, MERGE_BOMB, TEXT_BOMB, DEPTH_BOMB])
def test_alias_bombs_are_refused_without_being_expanded(bomb: str) -> None:
    assert any(word in problems(bomb)[0].message for word in ("aliases", "deep"))
    assert peak_bytes(bomb) < 4_000_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "".join(" " * depth + "a:\n" for depth in range(1000)),
    ],
)
def test_deep_nesting_is_refused_at_the_limit(text: str) -> None:
    assert "64 levels" in problem(text).message
    assert peak_bytes(text) < 8_000_000


def test_the_deepest_nesting_allowed_is_read() -> None:
    depth = compose.MAX_DEPTH
    assert only("[" * depth + "]" * depth).data
    assert problem("[" * (depth + 1) + "]" * (depth + 1))


def test_a_huge_scalar_and_a_huge_input_are_refused() -> None:
    assert "1,048,576" in problem("a: " + "x" * (compose.MAX_SCALAR + 1)).message
    assert "16,777,216" in problem("#" * (source.MAX_INPUT + 1)).message
    assert "16,777,216" in problem(b"#" * (source.MAX_INPUT + 1)).message
    assert "16,777,216" in problem("#" + "é" * (source.MAX_INPUT // 2)).message


def test_too_many_values_stop_the_reading_at_the_limit() -> None:
    composer = compose.Composer()
    events = yaml.parse("- 1\n" * (compose.MAX_NODES + 10_000), Loader=yaml.CSafeLoader)
    with pytest.raises(errors.Invalid):
        list(composer.documents_of(events))
    assert composer.nodes == compose.MAX_NODES + 1


def test_too_many_documents_are_refused_also_when_empty() -> None:
    assert len(source.read("---\na: 1\n" * compose.MAX_DOCUMENTS)) == compose.MAX_DOCUMENTS
    assert "1,000 documents" in problem("---\na: 1\n" * (compose.MAX_DOCUMENTS + 1)).message
    assert "1,000 documents" in problem("---\n" * 100_000).message


def test_the_number_of_reported_problems_is_limited() -> None:
    assert len(problems("- !x 1\n" * 10_000)) == compose.MAX_PROBLEMS
