"""The published schema of records, and what scripts in pods tell for them."""

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from tests.overview.test_comparison import job
from tfyard.model.origin import Software
from tfyard.overview.comparison_text import plain_record
from tfyard.overview.job_record import schema, told_commit, told_software

PUBLISHED = json.loads((Path(__file__).parents[2] / "schemas" / "record.json").read_text())


def test_the_published_schema_is_the_one_of_the_record() -> None:
    assert schema() == PUBLISHED, "run: python -m tfyard.overview.job_record > schemas/record.json"
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)


def test_a_record_as_it_is_printed_is_valid_by_the_schema() -> None:

    record = json.loads(msgspec.json.encode(plain_record(job("a", (0.5, 0.25)))))
    jsonschema.validate(record, PUBLISHED)
    assert record["metrics"][0]["best"] == 0.25


def test_what_scripts_in_pods_tell_is_found_among_other_lines() -> None:
    commit = "c" * 40
    log = f'packages: {{"python": "3.8.1"}}\npip\npackages: {{"python": "3.9.2"}}\ncommit: {commit}\ndone\n'
    assert told_software(log) == Software(python="3.9.2")
    assert told_commit(log) == commit
    assert told_software("the code is in /code\n") is None
    assert told_commit("commit: of last week\ncommit: \n") == ""


@pytest.mark.parametrize("told", ["", "{", "[]", '{"packages": {"a": 1}}', '{"python": null}'])
def test_what_is_told_and_cannot_be_read_is_named(told: str) -> None:
    software = told_software(f"packages: {told}\n")
    assert software is not None
    assert software.problem.startswith("what was told of them is corrupt")
