"""The JSON schema by which editors check job files."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.formats.samples import JOBFILES, again, document
from tfyard import formats
from tfyard.cli.init import TEMPLATE
from tfyard.formats.json_schema import jobfile_schema

ROOT = Path(__file__).parents[3]
PUBLISHED = json.loads((ROOT / "schemas" / "jobfile.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(PUBLISHED)
JOB = {"name": "a", "image": "b"}


def test_the_published_schema_is_the_one_that_the_words_give() -> None:
    assert jobfile_schema() == PUBLISHED, "run: python tools/json_schemas.py"


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)


@pytest.mark.parametrize("path", JOBFILES, ids=[path.name for path in JOBFILES])
def test_every_example_is_valid_and_stays_so_when_it_is_written_anew(path: Path) -> None:
    VALIDATOR.validate(document(path).data)
    written = formats.dump(formats.load(document(path)), "jobfile").document
    VALIDATOR.validate(written)
    assert again(formats.load(document(path)), "jobfile").name


def test_what_init_writes_is_valid() -> None:
    (document,) = formats.read(TEMPLATE.format(file="job.yaml", name="name: a", image="train:1"))
    VALIDATOR.validate(document.data)


@pytest.mark.parametrize(
    "data",
    [
        {"image": "b"},
        {**JOB, "name": "Not A Name"},
        {**JOB, "wroker": 2},
        {**JOB, "worker": "two"},
        {**JOB, "worker": -1},
        {**JOB, "worker": {"cont": 2}},
        {**JOB, "worker": {"restart": "OnFailure"}},
        {**JOB, "deadline": "soon"},
        {**JOB, "deadline": ""},
        {**JOB, "memory": "8GB"},
        {**JOB, "memory": "-1Gi"},
        {**JOB, "worker": {"cpu": "a lot"}},
        {**JOB, "gang": {"resources": {"memory": "8 GB"}}},
        {**JOB, "volumes": {"a": {"at": "/a", "claim": "c", "size": "5GB"}}},
        {**JOB, "volumes": {"a": {"nfs": "b:/c"}}},
        {**JOB, "volumes": {"a": {"at": "/a"}}},
        {**JOB, "volumes": {"a": {"at": "a", "emptyDir": {}}}},
        {**JOB, "volumes": {"a": {"at": "/a", "emptyDir": {}, "hostPath": "/b"}}},
        {**JOB, "env": ["A=1"]},
        {**JOB, "port": 70000},
        {**JOB, "clean": "All"},
        {**JOB, "version": 2},
        {**JOB, "run": 5},
        {**JOB, "run": [1]},
    ],
)
def test_a_typical_mistake_is_refused_by_the_schema_and_by_tfyard(data: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(data)
    assert formats.check(data).errors


def test_every_word_has_a_description_and_choices_are_listed() -> None:
    definitions = [PUBLISHED, *PUBLISHED["$defs"].values()]
    fields = {name: field for definition in definitions for name, field in definition["properties"].items()}
    assert [name for name, field in fields.items() if not field.get("description")] == []
    assert fields["restart"]["enum"] == ["always", "exit-code", "never", "on-failure"]
    assert [sorted(option) for option in fields["worker"]["oneOf"]] == [
        ["maximum", "minimum", "type"],
        ["$ref"],
    ]
    assert all(definition["description"] for definition in definitions)
