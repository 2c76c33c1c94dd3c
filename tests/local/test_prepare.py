"""What is found before a run starts, without a terminal."""

from pathlib import Path

import pytest

from tfyard.errors import Invalid, Usage
from tfyard.local.prepare import prepare
from tfyard.local.settings import Settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_problems_come_with_their_text_and_nothing_is_printed(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "job.yaml").write_text("name: t\nimage: a\nrun: echo\nwroker: 1\ndeadline: soon\n")
    with pytest.raises(Invalid) as caught:
        prepare(Settings(target="job.yaml"))
    assert [problem.path for problem in caught.value.problems] == [("wroker",), ("deadline",)]
    assert caught.value.name == "job.yaml"
    assert capfd.readouterr() == ("", "")


def test_warnings_are_returned_with_their_text(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "job.yaml").write_text("name: t\nimage: a\nrun: echo\nworker: 1\nevaluator: 2\n")
    prepared = prepare(Settings(target="job.yaml"))
    prepared.ports.release()
    assert [problem.severity for problem in prepared.warnings] == ["warning"]
    assert prepared.text
    assert capfd.readouterr() == ("", "")


def test_options_change_the_job_and_a_new_role_runs_what_the_others_run(folder: Path) -> None:
    (folder / "job.yaml").write_text("name: t\nimage: a\nrun: echo hi\nworker: 1\n")
    prepared = prepare(Settings(target="job.yaml", sets=("Worker=2", "ps=1"), evaluator=1, name="other"))
    prepared.ports.release()
    assert [task.name for task in prepared.job.tasks()] == ["worker-0", "worker-1", "ps-0", "evaluator-0"]
    assert prepared.job.name == "other"
    assert len(set(prepared.site.ports.values())) == 4


def test_a_script_is_a_job_whose_code_is_its_folder(folder: Path) -> None:
    (folder / "code").mkdir()
    (folder / "code" / "train.py").touch()
    prepared = prepare(Settings(target="code/train.py", args=("--steps", "3"), ps=1))
    prepared.ports.release()
    assert prepared.job.code is not None
    assert (prepared.job.code.source, prepared.file.parent) == ("code", folder)
    assert [task.name for task in prepared.job.tasks()] == ["ps-0"]
    assert list(folder.iterdir()) == [folder / "code"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "job.yaml", "args": ("--steps",)}, "are for a script"),
        ({"target": "job.yaml", "save": "x.yaml"}, "--save is for scripts"),
        ({"target": "train.py", "save": "x.yaml", "sets": ("ps=1",)}, "instead of --set"),
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
        prepare(Settings(**options))
