"""What `tfyard run` is asked to do; what then happens is in tests/e2e."""

from pathlib import Path

import pytest

from tests.cli.running import tfyard

JOB = "name: mnist\nimage: a\nrun: echo hi\nworker: 2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "train.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("train.py", "train"),
        ("01_train.py", "train"),
        ("My Job__2.py", "my-job-2"),
        ("123.py", "training"),
        ("ü.py", "training"),
        ("a" * 100 + ".py", "a" * 40),
    ],
)
def test_a_script_is_run_whatever_it_is_called(script: str, name: str, tmp_path: Path) -> None:
    (tmp_path / script).touch()
    done = tfyard("run", script, "--save", "job.yaml", cwd=tmp_path)
    assert (done.code, f"{name}: 1 Worker" in done.out + done.err) == (0, True)


@pytest.mark.parametrize("target", ["job.yaml", "train.py"])
@pytest.mark.parametrize("name", ["Bad Name", "../../away", "", "1st"])
def test_a_name_that_no_job_may_have_is_refused_and_leaves_nothing(
    target: str, name: str, folder: Path
) -> None:
    done = tfyard("run", target, "--name", name, cwd=folder)
    assert (done.code, done.err.startswith(f"tfyard: --name {name}: must be lower-case")) == (2, True)
    assert sorted(path.name for path in folder.iterdir()) == ["job.yaml", "train.py"]
