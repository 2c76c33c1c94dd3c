"""Every declared word is read and written: one that is not would be accepted and lost."""

import re

import pytest

from tests.formats.samples import DATA, again
from tfyard import errors, formats
from tfyard.formats.jobfile.words import JobFile
from tfyard.model import Job

PARTS = re.split(r"(?m)^(?=\w)", (DATA / "jobfiles" / "every-word.yaml").read_text())
"""Parts of the example file, with one word each."""


def job_of(parts: list[str]) -> Job:
    (document,) = formats.read("".join(parts))
    return formats.load(document)


def test_the_example_has_every_word() -> None:
    (document,) = formats.read("".join(PARTS))
    assert {*JobFile.__struct_encode_fields__} - {*document.data} == {"master"}, "a job has that or a chief"


@pytest.mark.parametrize("part", PARTS[2:], ids=lambda part: part.partition(":")[0])
def test_every_word_means_something(part: str) -> None:
    others = [each for each in PARTS if each != part]
    if part.startswith(("name:", "image:", "code:")):  # requirements are a file of the code
        with pytest.raises(errors.Invalid):
            job_of(others)
    else:
        assert job_of(others) != job_of(PARTS)


def test_every_word_is_written_as_it_was_read() -> None:
    assert again(job_of(PARTS), "jobfile") == job_of(PARTS)
