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


@pytest.mark.parametrize(
    ("args", "example"),
    [
        (["train.py", "--steps", "100"], "train.py -- --steps 100"),
        (["train.py", "--steps=100", "--worker", "2"], "train.py -- --steps=100"),
        (["train.py", "--worker", "2", "-n", "3"], "train.py -- -n 3"),
        (["--steps", "100", "train.py"], "train.py -- --steps 100"),
        (["-m", "train", "--steps", "100"], "-m train -- --steps 100"),
    ],
)
def test_an_unknown_option_is_explained_as_an_option_of_the_script(
    args: list[str], example: str, folder: Path
) -> None:
    done = tfyard("run", *args, cwd=folder)
    hint = f"Arguments of the script go after `--`, as in: tfyard run {example}\n"
    assert (done.code, done.err.endswith(hint)) == (2, True), done.err
    assert tfyard("run", "--dry-run", *example.split(), cwd=folder).code == 0


@pytest.mark.parametrize("command", ["run", "submit"])
@pytest.mark.parametrize(
    "words", ["train.py --gpus 1", "--gpus 1 train.py", "train.py --gpus=1", "train.py --gpu 1"]
)
def test_a_number_of_gpus_is_no_option_and_no_argument_of_the_script(
    command: str, words: str, folder: Path
) -> None:
    done = tfyard(command, *words.split(), cwd=folder)
    told = "no option says how many GPUs a task gets: a job file does, as in `gpu: 1` (`tfyard run train.py --save"
    assert (done.code, told in done.err, "train.py -- --gpus 1\n" in done.err) == (2, True, True), done.err
    assert tfyard("run", "--dry-run", "--gpus", "train.py", "--", "--gpus", "1", cwd=folder).code == 0


def test_a_job_file_needs_an_image_only_where_images_are_used(folder: Path) -> None:
    (folder / "job.yaml").write_text("name: t\nrun: 'true'\nworker: 1\n")
    assert tfyard("run", "--dry-run", "job.yaml", cwd=folder).code == 0
    done = tfyard("render", "job.yaml", cwd=folder)
    assert (done.code != 0, "image: must be given" in done.err) == (True, True)


def test_a_job_file_is_not_said_to_take_arguments(folder: Path) -> None:
    done = tfyard("run", "job.yaml", "--steps", "100", cwd=folder)
    assert (done.code, "after `--`" in done.err) == (2, False)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--set", "wroker=2"], "--set wroker=2: unknown role 'wroker'; did you mean worker?"),
        (
            ["--set", "xyz=2"],
            "--set xyz=2: unknown role 'xyz'; one of: chief, master, worker, ps, evaluator",
        ),
        (["--set", "tf1=true"], "--set tf1=true: unknown role 'tf1'; --tf1 is an option of its own"),
        (["--set", "worker=x"], "--set worker=x: must be a number from 0 to 100000, as in worker=4"),
        (["--set", "worker=²"], "--set worker=²: must be a number from 0 to 100000, as in worker=4"),
        (["--set", "worker="], "--set worker=: must be a number from 0 to 100000, as in worker=4"),
        (["--kill", "worker-0"], "--kill worker-0: must be TASK@TIME or TASK@TIME:now, as in worker-0@30s"),
        (["--kill", "worker-0@"], "--kill worker-0@: must be TASK@TIME or TASK@TIME:now, as in worker-0@30s"),
        (
            ["--kill", "worker-0@soon"],
            "--kill worker-0@soon: must be TASK@TIME or TASK@TIME:now, as in worker-0@30s",
        ),
        (
            ["--kill", "worker-0@1s:x"],
            "--kill worker-0@1s:x: must be TASK@TIME or TASK@TIME:now, as in worker-0@30s",
        ),
        (["--kill", "wroker-0@1s"], "--kill wroker-0: task not found; did you mean worker-0?"),
    ],
)
def test_a_wrong_option_is_one_line_that_says_what_to_write(
    args: list[str], words: str, folder: Path
) -> None:
    done = tfyard("run", "job.yaml", *args, cwd=folder)
    assert (done.code, done.err) == (2, f"tfyard: {words}\n")


def test_an_option_of_a_script_that_makes_no_job_is_one_line_too(folder: Path) -> None:
    (folder / "train.py").touch()
    done = tfyard("run", "train.py", "--worker", "1000000", cwd=folder)
    assert (done.code, done.err) == (2, "tfyard: --worker: must be a number from 0 to 100000\n")


@pytest.mark.parametrize(
    "args",
    [
        ["job.yaml", "--set", "Worker=3"],
        ["job.yaml", "--kill", "worker-1@0s"],
        ["job.yaml", "--set", "PS=1"],
        ["--tensorboard", "job.yaml"],
        ["--tensorboard", "logs", "job.yaml"],
        ["job.yaml", "--tensorboard"],
    ],
)
def test_a_right_option_is_taken(args: list[str], folder: Path) -> None:
    assert tfyard("run", "--dry-run", *args, cwd=folder).code == 0


def test_a_file_or_a_module_must_be_named(folder: Path) -> None:
    done = tfyard("run", "--worker", "2", cwd=folder)
    assert (done.code, done.err.endswith("Error: Missing argument 'FILE'.\n")) == (2, True)


def test_what_is_no_job_and_no_script_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "train.py").mkdir()
    (tmp_path / "train").write_text("print('hello')\n")
    (tmp_path / "other.yaml").write_text("kind: ConfigMap\n")
    for name, words in (
        ("train.py", "train.py is a folder; name the script in it"),
        ("train", "and no workload; the name of a Python script must end with .py"),
        ("other.yaml", "and no workload; give a file with one"),
    ):
        done = tfyard("run", name, cwd=tmp_path)
        assert (done.code, done.err.endswith(f"{words}\n")) == (2, True), done.err
