"""Every declared word is read and written: one that is not would be accepted and lost."""

import re

import pytest
from msgspec.structs import replace

from tests.formats.samples import DATA, again
from tfyard import errors, formats
from tfyard.formats.jobfile.words import JobFile
from tfyard.model import Job, MLflow

PARTS = re.split(r"(?m)^(?=\w)", (DATA / "jobfiles" / "every-word.yaml").read_text())
"""Parts of the example file, with one word each."""


def job_of(parts: list[str]) -> Job:
    (document,) = formats.read("".join(parts))
    return formats.load(document)


def test_the_example_has_every_word() -> None:
    (document,) = formats.read("".join(PARTS))
    absent = {*JobFile.__struct_encode_fields__} - {*document.data}
    assert absent == {"master", "together"}, "a job has a chief instead, and dynamic workers"


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


def test_together_is_read_and_written_and_not_for_dynamic_workers() -> None:
    fixed = [part for part in PARTS if not part.startswith("dynamic:")]
    job = job_of([*fixed, "together: true\n"])
    assert job.together
    assert again(job, "jobfile") == job
    assert again(replace(job, tensorboard=None, code=None, tf1=False, objects=()), "kubeflow.org/v1").together
    with pytest.raises(errors.Invalid, match="together: must not be set with dynamic workers"):
        job_of([*PARTS, "together: true\n"])


def test_the_run_at_mlflow_is_an_annotation_of_the_tfjob_and_no_word_of_the_file() -> None:
    job = replace(job_of(PARTS), tensorboard=None, code=None, tf1=False, objects=())
    reported = replace(job, mlflow=MLflow(uri="http://mlflow.example", run="ab12"))
    assert again(reported, "kubeflow.org/v1").mlflow == reported.mlflow
    assert again(reported, "jobfile").mlflow == MLflow(uri="http://mlflow.example")


def test_the_time_to_save_is_the_pods_grace_period_also_of_one_role() -> None:
    (document,) = formats.read("name: a\nimage: i\nstopGrace: 2m\nworker: {count: 2, stopGrace: 0}\nps: 1\n")
    grace = {role.name: role.template["spec"] for role in formats.load(document).roles}
    assert {name: spec["terminationGracePeriodSeconds"] for name, spec in grace.items()} == {
        "Worker": 0,
        "PS": 120,
    }
