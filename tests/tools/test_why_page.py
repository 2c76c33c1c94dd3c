"""The situations of docs/why.md are those that tests make."""

from collections import Counter

from tests.remote.reading import corpus
from tools.why_page import PAGE, PARTS, written


def test_the_page_says_what_the_corpus_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "| a ResourceQuota that the next pod would exceed |" in page
    assert page == written(page), "run: python -m tools.why_page"


def test_the_corpus_is_large_and_few_causes_were_only_fed_words_of_ours() -> None:
    rows = list(corpus.rows())
    assert len(rows) >= 80
    assert {row.where for row in rows} == {*PARTS}
    assert [
        each for each, count in Counter((row.where, row.situation) for row in rows).items() if count > 1
    ] == []
    assert len(corpus.only_in_our_words()) <= 6
