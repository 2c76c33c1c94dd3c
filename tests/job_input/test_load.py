"""The one job of a file, as `run` and `submit` read it."""

from pathlib import Path

import pytest

from tfyard.errors import Invalid, Usage
from tfyard.job_input import files
from tfyard.job_input.load import Loaded, from_documents
from tfyard.job_input.options import JobOptions, adjusted
from tfyard.job_input.script import portable_words

JOB = "name: t\nimage: example/a:1\nrun: python t.py\nworker: 1\n"


def load(folder: Path, text: str, *, uses_images: bool = True) -> Loaded:
    name = str(folder / "job.yaml")
    (folder / "job.yaml").write_text(text)
    return from_documents(files.read_documents(name), name, uses_images=uses_images)


def test_what_is_beside_the_job_is_kept(tmp_path: Path) -> None:
    found = load(tmp_path, f"{JOB}---\nkind: ConfigMap\napiVersion: v1\nmetadata: {{name: a}}\n")
    assert (found.job.name, found.file) == ("t", (tmp_path / "job.yaml").resolve())
    assert [each["kind"] for each in found.others] == ["ConfigMap"]
    assert found.changes is None


def test_a_file_has_one_job(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="has 2 jobs; give a file with one"):
        load(tmp_path, f"{JOB}---\n{JOB}")


def test_an_image_that_no_node_accepts_is_an_error_only_where_images_are_used(tmp_path: Path) -> None:
    text = JOB.replace("example/a:1", "<USER>/a:1")
    assert [each.severity for each in load(tmp_path, text, uses_images=False).warnings] == ["warning"]
    with pytest.raises(Invalid):
        load(tmp_path, text)


def test_options_win_and_a_new_role_runs_what_the_others_run(tmp_path: Path) -> None:
    job = adjusted(load(tmp_path, JOB).job, JobOptions(sets=("ps=2",), worker=3, name="other"))
    assert (job.name, [task.name for task in job.tasks()]) == (
        "other",
        ["worker-0", "worker-1", "worker-2", "ps-0", "ps-1"],
    )
    assert job.roles[0].template == job.roles[1].template


def test_the_code_of_a_script_is_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    words = portable_words(JobOptions(target="train.py", worker=2), tmp_path / "deploy")
    assert (words["code"], words["run"], words["worker"]) == ("..", ["python", "train.py"], 2)
