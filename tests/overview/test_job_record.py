"""The published schema of records."""

import json
from pathlib import Path

import jsonschema
import msgspec

from tests.overview.test_comparison import job
from tfyard.overview.comparison_text import plain_record
from tfyard.overview.job_record import schema

PUBLISHED = json.loads((Path(__file__).parents[2] / "schemas" / "record.json").read_text())


def test_the_published_schema_is_the_one_of_the_record() -> None:
    assert schema() == PUBLISHED, "run: python -m tfyard.overview.job_record > schemas/record.json"
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)


def test_a_record_as_it_is_printed_is_valid_by_the_schema() -> None:

    record = json.loads(msgspec.json.encode(plain_record(job("a", (0.5, 0.25)))))
    jsonschema.validate(record, PUBLISHED)
    assert record["metrics"][0]["best"] == 0.25
