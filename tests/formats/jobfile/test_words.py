"""A word that is declared, and that nothing reads or writes, would be accepted and lost."""

import re

import pytest

from tests.formats.samples import DATA, again
from tfyard import errors, formats
from tfyard.formats.jobfile.words import JobFile
from tfyard.model import Job

PARTS = re.split(r"(?m)^(?=\w)", (DATA / "jobfiles" / "every-word.yaml").read_text())
"""One word each."""


def job_of(parts: list[str]) -> Job:
    (found,) = formats.read("".join(parts))
    return formats.load(found)


def test_the_example_has_every_word() -> None:
    (found,) = formats.read("".join(PARTS))
    assert {*JobFile.__struct_encode_fields__} - {*found.data} == {"master"}, "a job has that or a chief"


@pytest.mark.parametrize("part", PARTS[2:], ids=lambda part: part.partition(":")[0])
def test_every_word_means_something(part: str) -> None:
    rest = [each for each in PARTS if each != part]
    if part.startswith(("name:", "image:", "code:")):  # requirements are a file of the code
        with pytest.raises(errors.Invalid):
            job_of(rest)
    else:
        assert job_of(rest) != job_of(PARTS)


def test_every_word_is_written_as_it_was_read() -> None:
    assert again(job_of(PARTS), "jobfile") == job_of(PARTS)
