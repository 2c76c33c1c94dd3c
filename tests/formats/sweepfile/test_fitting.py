"""Whether a job can be the job of a sweep: both files, every problem at once, each in its own file."""

from pathlib import Path

import pytest

from tests.cli.running import tfyard

SWEEP = """\
name: cancer
job: job.yaml
over:
  lr: {from: 1e-4, to: 1e-1, log: true}
  opt: [sgd, "a b"]
  path: [1, 2]
objective: max auc
trials: 4
"""
JOB = """\
name: cancer
image: train:1
run: |
  cat <<X
  {opt}
  X
  python train.py --lr {l_r}
worker: 1
"""


def write(folder: Path, sweep: str = SWEEP, job: str = JOB) -> None:
    (folder / "sweep.yaml").write_text(sweep)
    (folder / "job.yaml").write_text(job)


def test_problems_of_both_files_are_shown_in_their_own_file(tmp_path: Path) -> None:
    write(tmp_path)
    done = tfyard("validate", "sweep.yaml", cwd=tmp_path)
    assert done.code == 1
    assert [line for line in done.err.splitlines() if not line.startswith("    ")] == [
        "sweep.yaml:5:14: error: over.opt[1]: cannot be quoted where the job has {opt}: in a comment,"
        " a here-document or backticks",
        "  fix: let the program read it from a variable",
        "sweep.yaml:6:3: error: over.path: the job does not name {path}, so path would replace the variable PATH",
        "  fix: name it in the job, or rename it",
        "job.yaml:3:6: error: run: {l_r} in the job is no parameter of the sweep",
        "  fix: did you mean {lr}?",
    ]


@pytest.mark.parametrize("written", ["{ l_r }", "{L-R}", "{ lr }", "{LR}"])
def test_what_is_almost_a_placeholder_is_an_error_with_the_one_that_is_meant(
    tmp_path: Path, written: str
) -> None:
    write(tmp_path, SWEEP.replace("path:", "way:").replace(', "a b"', ""), JOB.replace("{l_r}", written))
    done = tfyard("validate", "sweep.yaml", cwd=tmp_path)
    assert (
        done.err.splitlines()[0]
        == f"job.yaml:3:6: error: run: {written} in the job is no parameter of the sweep"
    )
    assert done.err.splitlines()[-1] == "  fix: did you mean {lr}?"


def test_a_wrong_sweep_file_does_not_hide_what_is_wrong_in_its_job(tmp_path: Path) -> None:
    write(tmp_path, SWEEP.replace("max auc", "auc"), JOB.replace("worker", "wroker"))
    (tmp_path / "folder").mkdir()
    done = tfyard("validate", "../sweep.yaml", "-o", "json", cwd=tmp_path / "folder")
    assert done.code == 1
    assert '"path": "objective"' in done.out
    assert '"file": "../job.yaml"' in done.out
    assert '"path": "wroker"' in done.out


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("gone.yaml", "job: gone.yaml: file not found"),
        ("gone.py", "job: gone.py: file not found"),
        ("sweep.yaml", "job: sweep.yaml is a sweep file"),
        (".", "is a folder"),
    ],
)
def test_a_job_that_is_none_is_a_problem_of_the_sweep_file(tmp_path: Path, job: str, says: str) -> None:
    write(tmp_path, SWEEP.replace("job.yaml", job))
    done = tfyard("validate", "sweep.yaml", cwd=tmp_path)
    assert done.code == 1
    assert "sweep.yaml:2:6: error: " in done.err
    assert says in done.err


def test_a_valid_sweep_says_what_it_will_do(tmp_path: Path) -> None:
    write(
        tmp_path,
        "job: job.yaml\nover: {lr: [1, 2], b: [1, 2]}\nobjective: min loss\n",
        JOB.replace("{l_r}", "{lr}"),
    )
    done = tfyard("validate", "sweep.yaml", cwd=tmp_path)
    says = "sweep.yaml: the sweep is valid: 4 trials, min loss, by grid, over lr, b, 4 combinations, of job.yaml\n"
    assert (done.code, done.out, done.err) == (0, says, "")


def test_a_script_can_be_the_job(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    write(tmp_path, SWEEP.replace("job.yaml", "train.py").replace("path:", "way:"))
    assert tfyard("validate", "sweep.yaml", cwd=tmp_path).code == 0


def test_names_of_pods_that_would_be_too_long_are_told_with_the_room_that_is_left(tmp_path: Path) -> None:
    long = SWEEP.replace("name: cancer", f"name: {'a' * 52}").replace("path:", "way:").replace(', "a b"', "")
    write(tmp_path, long, JOB.replace("{l_r}", "{lr}"))
    done = tfyard("validate", "sweep.yaml", cwd=tmp_path)
    assert done.err.startswith("sweep.yaml:1:7: error: name: the name aaaa")
    assert "fix: give a name of at most 50 characters" in done.err
    write(tmp_path, long.replace("a" * 52, "a" * 50), JOB.replace("{l_r}", "{lr}"))
    assert tfyard("validate", "sweep.yaml", cwd=tmp_path).code == 0


def test_without_a_name_the_one_of_the_job_must_leave_room(tmp_path: Path) -> None:
    unnamed = SWEEP.replace("name: cancer\n", "").replace("path:", "way:").replace(', "a b"', "")
    write(tmp_path, unnamed, JOB.replace("{l_r}", "{lr}").replace("name: cancer", f"name: {'a' * 46}"))
    done = tfyard("validate", "sweep.yaml", cwd=tmp_path)
    assert done.code == 1
    assert "name: the name aaaa" in done.err


@pytest.mark.parametrize("command", ["render", "convert"])
def test_commands_for_one_job_name_the_file_of_the_job(tmp_path: Path, command: str) -> None:
    write(tmp_path)
    done = tfyard(command, "sweep.yaml", cwd=tmp_path)
    assert done.code == 2
    assert "job.yaml" in done.err


@pytest.mark.parametrize("command", [("sweep",), ("sweep", "--dry-run"), ("run", "--dry-run")])
def test_running_the_sweep_tells_all_that_does_not_fit(tmp_path: Path, command: tuple[str, ...]) -> None:
    write(tmp_path)
    done = tfyard(*command, "sweep.yaml", cwd=tmp_path)
    assert done.code == 2
    assert len(done.err.splitlines()) == 3
    assert not (tmp_path / ".tfyard").exists()
