"""What is found before a run starts, without a terminal."""

from pathlib import Path

import pytest

from tfyard import formats
from tfyard.errors import Invalid, Usage
from tfyard.job_input import script
from tfyard.local.commands import planned
from tfyard.local.prepare import prepare
from tfyard.local.settings import RunOptions


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_problems_come_with_their_text_and_nothing_is_printed(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "job.yaml").write_text("name: t\nimage: a\nrun: echo\nwroker: 1\ndeadline: soon\n")
    with pytest.raises(Invalid) as caught:
        prepare(RunOptions(target="job.yaml"))
    assert [problem.path for problem in caught.value.problems] == [("wroker",), ("deadline",)]
    assert caught.value.name == "job.yaml"
    assert capfd.readouterr() == ("", "")


def test_warnings_are_returned_with_their_text(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "job.yaml").write_text("name: t\nimage: a\nrun: echo\nworker: 1\nevaluator: 2\n")
    prepared = prepare(RunOptions(target="job.yaml"))
    prepared.ports.release()
    assert [problem.severity for problem in prepared.warnings] == ["warning"]
    assert prepared.text
    assert capfd.readouterr() == ("", "")


def test_options_change_the_job_and_a_new_role_runs_what_the_others_run(folder: Path) -> None:
    (folder / "job.yaml").write_text("name: t\nimage: a\nrun: echo hi\nworker: 1\n")
    prepared = prepare(RunOptions(target="job.yaml", sets=("Worker=2", "ps=1"), evaluator=1, name="other"))
    prepared.ports.release()
    assert [task.name for task in prepared.job.tasks()] == ["worker-0", "worker-1", "ps-0", "evaluator-0"]
    assert prepared.job.name == "other"
    assert len(set(prepared.site.ports.values())) == 4


@pytest.mark.parametrize(
    ("options", "name", "program"),
    [
        ({"target": "code/train.py"}, "train", ["code/train.py"]),
        ({"target": "./code/train.py"}, "train", ["code/train.py"]),
        ({"module": "code.train"}, "train", ["-m", "code.train"]),
    ],
)
def test_a_script_or_module_runs_in_the_callers_folder_and_its_saved_job_too(
    folder: Path, options: dict[str, str], name: str, program: list[str]
) -> None:
    (folder / "code").mkdir()
    (folder / "code" / "train.py").touch()
    settings = RunOptions(
        **options, args=("--rate", "$(A)$$"), ps=1, env=("B=$$",), save="deploy/job.yaml", memory="1Gi"
    )
    prepared = prepare(settings)
    prepared.ports.release()
    (process,) = planned(prepared)
    assert (process.directory, process.command) == (str(folder), ["python", *program, "--rate", "$(A)$$"])
    assert process.env["B"] == "$$"
    assert [task.name for task in prepared.job.tasks()] == ["ps-0"]
    words = script.portable_words(settings, folder / "deploy")
    assert (words["name"], words["code"], words["memory"]) == (name, "..", "1Gi")
    (folder / "deploy").mkdir()
    (folder / "deploy" / "job.yaml").write_text(formats.to_yaml(words))
    again = prepare(RunOptions(target="deploy/job.yaml"))
    again.ports.release()
    (saved,) = planned(again)
    assert (saved.directory, saved.command) == (process.directory, process.command)
    assert saved.env["B"] == "$$"


def test_a_script_elsewhere_is_run_from_here_and_cannot_be_saved(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "here").mkdir()
    (folder / "train.py").touch()
    monkeypatch.chdir(folder / "here")
    prepared = prepare(RunOptions(target="../train.py"))
    prepared.ports.release()
    (process,) = planned(prepared)
    assert (process.directory, process.command) == (str(folder / "here"), ["python", "../train.py"])
    with pytest.raises(Usage, match="outside of this folder"):
        script.portable_words(RunOptions(target="../train.py"), Path.cwd())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target": "job.yaml", "args": ("python", "a b.py")},
            "-- python 'a b.py': every task of t has a command of its own",
        ),
        ({"target": "job.yaml", "save": "x.yaml"}, "--save is for scripts"),
        ({"target": "train.py", "save": "x.yaml", "sets": ("ps=1",)}, "instead of --set"),
        (
            {"target": "job.yaml", "deadline": "1h"},
            "--deadline is for scripts; a job file has the word deadline",
        ),
        ({"target": "train.py", "deadline": "soon"}, "--deadline: must be a duration; for example 90s"),
        ({"target": "train.py", "memory": "4GB"}, "--memory: .*; 4G or 4Gi"),
        ({"target": "train.py", "python": "python9"}, "--python python9: not found"),
        ({"target": "absent.py"}, "absent.py: file not found"),
        ({"target": "job.yaml", "worker": 0}, "has no tasks"),
        ({"target": "job.yaml", "mount": ("out=.",)}, "no volume of this name"),
        ({"target": "job.yaml", "mount": ("out=absent",)}, "absent is not a directory"),
        ({"target": "job.yaml", "env": ("A",)}, "--env A: must be NAME=VALUE"),
        ({"target": "job.yaml", "metric": "("}, r"--metric \("),
        ({"target": "job.yaml", "metric": "loss"}, "name what to read"),
    ],
)
def test_a_wrong_request_is_a_usage_error(folder: Path, options: dict[str, object], message: str) -> None:
    (folder / "job.yaml").write_text("name: t\nimage: a\nrun: echo hi\nworker: 1\n")
    (folder / "train.py").touch()
    with pytest.raises(Usage, match=message):
        prepare(RunOptions(**options))
