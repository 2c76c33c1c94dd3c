"""The JSON schema by which editors check sweep files."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.running import ROOT, tfyard
from tfyard import formats
from tfyard.formats import sweepfile
from tfyard.formats.json_schema import sweepfile_schema

PUBLISHED = json.loads((ROOT / "schemas" / "sweepfile.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(PUBLISHED)
SWEEP = {"job": "a.yaml", "over": {"lr": [1, 2]}, "objective": "max auc"}


def test_the_published_schema_is_the_one_that_the_words_give() -> None:
    assert sweepfile_schema() == PUBLISHED, "run: python tools/json_schemas.py"


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(PUBLISHED)


@pytest.mark.parametrize(
    "data",
    [
        SWEEP,
        {**SWEEP, "over": {"lr": {"from": 0.1, "to": "1e-1", "log": True}}, "trials": 3},
        {**SWEEP, "over": {"a": [True, "b", 0.1]}, "deadline": "6h", "seed": 1, "name": "a-b"},
    ],
)
def test_what_tfyard_reads_is_valid(data: dict[str, Any]) -> None:
    VALIDATOR.validate(data)


@pytest.mark.parametrize(
    "data",
    [
        {key: value for key, value in SWEEP.items() if key != "objective"},
        {**SWEEP, "name": "Not A Name"},
        {**SWEEP, "objective": "auc"},
        {**SWEEP, "over": {"lr": 0.1}},
        {**SWEEP, "over": {"lr": {"from": 1}}},
        {**SWEEP, "over": {"lr": {"from": "fast", "to": 1}}},
        {**SWEEP, "trials": 0},
        {**SWEEP, "prune": "hyperband"},
        {**SWEEP, "deadline": "soon"},
        {**SWEEP, "retry_trials": 1},
    ],
)
def test_a_typical_mistake_is_refused_by_the_schema_and_by_tfyard(data: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(data)
    assert sweepfile.check(data).problems


def test_init_writes_a_valid_file_and_its_schema_for_the_job_beside_it(tmp_path: Path) -> None:
    job = "name: mnist\nimage: a\nrun: python train.py --lr 0.01 --batch-size 32 --steps 100\nworker: 1\n"
    (tmp_path / "job.yaml").write_text(job)
    done = tfyard("init", "--sweep", cwd=tmp_path)
    assert (done.code, done.out) == (
        0,
        "wrote sweep.yaml; next: tfyard validate sweep.yaml, then tfyard sweep sweep.yaml\n",
    )
    text = (tmp_path / "sweep.yaml").read_text()
    place = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    assert json.loads((tmp_path / place).read_text()) == PUBLISHED
    assert "# write --lr {lr} into job.yaml, in place of --lr 0.01" in text
    (document,) = formats.read(text)
    VALIDATOR.validate(document.data)
    assert document.data["over"] == {
        "lr": {"from": 0.001, "to": 0.1, "log": True},
        "batch_size": {"from": 8, "to": 128},
    }
    assert tfyard("validate", "sweep.yaml", cwd=tmp_path).code == 0


def test_the_commented_lines_of_init_are_valid_when_uncommented(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    text = tfyard("init", "--sweep", "-", cwd=tmp_path).out
    head, _, rest = text.partition("over:\n")
    lines = [
        f"  {line[2:]}" if ": [" in line or "layers" in line else line.removeprefix("# ")
        for line in rest.splitlines()
    ]
    (document,) = formats.read(f"{head}over:\n" + "\n".join(lines))
    assert list(sweepfile.load(document).spec.over) == ["lr", "batch", "layers"]
    VALIDATOR.validate(document.data)


@pytest.mark.parametrize(
    ("files", "args", "says"),
    [
        ((), ("--sweep",), "neither a job.yaml nor a script; name the job of the sweep"),
        (("a.py", "b.py"), ("--sweep",), "2 scripts and no job.yaml; name the job of the sweep"),
        ((), ("--sweep", "--job", "gone.py"), "gone.py: file not found"),
        ((), ("--job", "a.py"), "--job is for --sweep"),
        (("a.py", "sweep.yaml"), ("--sweep",), "sweep.yaml exists; --force overwrites it"),
    ],
)
def test_init_without_a_job_says_how_to_name_one(
    tmp_path: Path, files: tuple[str, ...], args: tuple[str, ...], says: str
) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    done = tfyard("init", *args, cwd=tmp_path)
    assert done.code == 2
    assert says in done.err


def test_a_word_of_the_sweep_file_can_be_explained() -> None:
    done = tfyard("explain", "sweep.over.lr.log")
    assert (done.code, done.out.splitlines()[0]) == (0, "FIELD: sweep.over.lr.log <true or false>")
    assert "objective <text>" in tfyard("explain", "sweep").out
    assert "did you mean prune?" in tfyard("explain", "sweep.prun").err
