"""A Job is checked when it is made, and knows its job file."""

from pathlib import Path

import pytest

import tfyard
from tfyard import formats
from tfyard.formats.jobfile.words import JobFile
from tfyard.sdk.words import Words


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('hello')")
    return tmp_path


def words_of(job: tfyard.Job) -> dict[str, object]:
    (document,) = formats.read(job.yaml())
    found: dict[str, object] = document.data
    return found


def test_a_script_is_a_job_with_this_folder_as_its_code() -> None:
    job = tfyard.Job("train.py", worker=2, gpu=1, args=["--steps", 100])  # type: ignore[list-item]
    assert words_of(job) == {
        "name": "train",
        "image": "tensorflow/tensorflow:2.21.0",
        "code": ".",
        "run": ["python", "train.py", "--steps", "100"],
        "worker": 2,
        "gpu": 1,
    }
    assert (job.name, job.tasks) == ("train", ["worker-0", "worker-1"])


def test_a_script_may_have_no_workers_of_its_own() -> None:
    assert tfyard.Job("train.py", chief=1, ps=1).tasks == ["chief-0", "ps-0"]
    assert tfyard.Job("train.py").tasks == ["worker-0"]


def test_a_script_of_another_folder_runs_in_this_one(folder: Path) -> None:
    (folder.parent / "other.py").touch()
    words = words_of(tfyard.Job("../other.py"))
    assert (words["run"], words["workdir"]) == (["python", "../other.py"], str(folder))
    assert "code" not in words


def test_a_module_is_run_by_python() -> None:
    assert words_of(tfyard.Job(module="pkg.train"))["run"] == ["python", "-m", "pkg.train"]
    assert tfyard.Job(module="pkg.train").name == "train"


def test_words_are_a_job_that_has_this_folder_if_its_command_names_a_file_of_it() -> None:
    assert words_of(tfyard.Job(run="python train.py", worker=2))["code"] == "."
    assert "code" not in words_of(tfyard.Job(run="python /app/train.py"))
    assert words_of(tfyard.Job(run=["python", "train.py"], code="git@example.com:a/b.git"))["code"] != "."


def test_a_file_is_a_job_with_changes(folder: Path) -> None:
    (folder / "job.yaml").write_text(
        "name: mnist\nimage: a/b:1\nrun: python x.py\nenv: {LR: 1, A: b}\nworker: 1\n"
    )
    job = tfyard.Job("job.yaml", worker=4, ps=1, env={"LR": "0.01", "DEBUG": True}, name="other")
    assert (job.name, len(job.tasks)) == ("other", 5)
    words = words_of(job)
    assert words["env"] == {"A": "b", "LR": "0.01", "DEBUG": "true"}
    assert tfyard.Job(folder / "job.yaml").tasks == ["worker-0"]


def test_a_tfjob_is_a_job_with_changes(folder: Path) -> None:
    (folder / "tfjob.yaml").write_text(
        "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: mnist}\nspec: {tfReplicaSpecs: {Worker: "
        "{template: {spec: {containers: [{name: tensorflow, image: a/b:1, command: [python]}]}}}}}\n"
    )
    assert tfyard.Job("tfjob.yaml", worker=3).tasks == ["worker-0", "worker-1", "worker-2"]


def test_every_problem_is_told_at_once_with_its_place_and_fix() -> None:
    with pytest.raises(tfyard.Invalid) as caught:
        tfyard.Job("train.py", worker=-1, memory="lots", gpus=1)  # type: ignore[call-arg]
    assert str(caught.value).splitlines() == [
        "worker: must be a number from 0 to 100000",
        "memory: must be a quantity; for example 8Gi or 500M",
        "gpus: unknown field 'gpus'; did you mean gpu?",
    ]
    assert len(caught.value.problems) == 3


def test_problems_of_a_file_are_told_with_their_lines(folder: Path) -> None:
    (folder / "job.yaml").write_text("name: mnist\nimage: a/b:1\nrun: x\nmemory: lots\n")
    with pytest.raises(tfyard.Invalid, match=r"^job.yaml:4:9: memory: must be a quantity; for example"):
        tfyard.Job("job.yaml")


@pytest.mark.parametrize(
    ("target", "words", "message"),
    [
        (None, {}, "a Job needs a file, a script, a module or the word run"),
        ("absent.yaml", {}, "absent.yaml: file not found"),
        ("-", {}, "-: a Job is not read from standard input"),
        ("absent.py", {}, "absent.py: file not found"),
        ("../train.py", {"code": "."}, "is outside of this folder"),
        ("train.py", {"module": "a"}, "module: give either train.py or a module"),
        ("train.py", {"run": "a"}, "run: give either a script or module, or the word run"),
        (None, {"run": "a", "args": ["b"]}, "args: they are for a script or module"),
        ("job.yaml", {"memory": "1Gi"}, "memory: job.yaml says this itself; change it there"),
        ("job.yaml", {"worker": {"count": 2}}, r"^worker=\{'count': 2\}: must be a number from 0"),
        ("job.yaml", {"name": "Wrong"}, "^name='Wrong': must be lower-case letters"),
    ],
)
def test_what_makes_no_sense_is_refused(
    folder: Path, target: str | None, words: dict[str, object], message: str
) -> None:
    (folder.parent / "train.py").touch()
    (folder / "job.yaml").write_text("name: mnist\nimage: a/b:1\nrun: x\n")
    with pytest.raises(tfyard.Usage, match=message):
        tfyard.Job(target, **words)  # type: ignore[arg-type]


def test_it_is_shown_as_it_was_written() -> None:
    job = tfyard.Job("train.py", worker=2, env={"LR": "0.01"})
    assert repr(job) == "Job('train.py', worker=2, env={'LR': '0.01'})"
    assert str(job) == job.yaml()


def test_the_words_of_python_are_those_of_the_job_file() -> None:
    of_file = {field.encode_name for field in __import__("msgspec").structs.fields(JobFile)}
    assert set(Words.__annotations__) - {"args", "module"} == of_file


def test_a_file_is_found_after_the_folder_was_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "job.yaml").write_text("name: mnist\nimage: a/b:1\nrun: x\n")
    job = tfyard.Job("job.yaml")
    monkeypatch.chdir("/")
    assert Path(job.source.options.target).samefile(folder / "job.yaml")
    assert repr(job) == "Job('job.yaml')"
