import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.reading import only
from tests.formats.samples import EVERY, document
from tfyard import formats


@pytest.mark.parametrize(
    "text",
    [
        "y",
        "n",
        "on",
        "No",
        "~",
        "null",
        "",
        "1e3",
        "010",
        "0x1F",
        "1_000",
        ".5",
        ".inf",
        "9" * 40,
        "1:30",
        "a",
    ],
)
def test_text_that_looks_like_something_else_stays_text(text: str) -> None:
    assert only(formats.to_yaml({"key": text, text or "empty": [text]})).data["key"] == text


@settings(max_examples=100, derandomize=True)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.just("\n"), max_size=20))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert only(formats.to_yaml({"key": text})).data == {"key": text}


def test_scripts_are_blocks_and_nothing_is_folded_or_shared() -> None:
    part = {"a": "x" * 200}
    assert formats.to_yaml({"run": "one\ntwo\n", "b": part, "c": part}) == (
        f"run: |\n  one\n  two\nb:\n  a: {'x' * 200}\nc:\n  a: {'x' * 200}\n"
    )
    assert formats.to_yaml({"a": 1}, {"b": 2}) == "---\na: 1\n---\nb: 2\n"


def test_a_comment_at_the_head_is_one_line_whatever_the_job_has_in_it() -> None:
    dumped = formats.dump(formats.load({"name": "a", "image": "x", "tensorboard": "/a\n/b: c\n"}), "v1")
    assert dumped.text().splitlines()[0] == "# not carried over: " + " ".join(dumped.lost[0].split())
    assert only(dumped.text()).data == dumped.document


def test_what_is_written_is_the_same_every_time() -> None:
    jobs = [formats.load(document(path)) for path in EVERY]
    for version in ("v1", "jobfile"):
        assert [formats.dump(job, version).text() for job in jobs] == [
            formats.dump(formats.load(document(path)), version).text() for path in EVERY
        ]
