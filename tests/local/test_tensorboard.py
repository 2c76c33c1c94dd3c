"""TensorBoard beside a run."""

from pathlib import Path

import pytest

from tfyard.errors import Usage
from tfyard.local import tensorboard
from tfyard.local.prepare import prepare
from tfyard.local.prepared import PreparedRun
from tfyard.local.settings import RunOptions

JOB = """
name: t
image: a
code: mine
run: echo hi
volumes: {out: {claim: results, at: /out}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    python = tmp_path / "bin" / "python"  # TensorBoard is installed there, whatever it is asked
    python.parent.mkdir()
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return tmp_path


def prepared(logs: str, **options: str) -> PreparedRun:
    Path("job.yaml").write_text(JOB + (f"tensorboard: {logs}\n" if logs else ""))
    found = prepare(RunOptions(target="job.yaml", python="bin/python", **options))
    found.ports.release()
    return found


@pytest.mark.parametrize(
    ("logs", "asked", "expected"),
    [
        ("/out/logs", "", "{}/.tfyard/volumes/results/logs"),
        ("/code/logs", "", "{}/mine/logs"),
        ("/out/logs", "here/logs", "here/logs"),
        ("", "/out", "{}/.tfyard/volumes/results"),
    ],
)
def test_tensorboard_reads_what_the_tasks_write(folder: Path, logs: str, asked: str, expected: str) -> None:
    command = tensorboard.command(prepared(logs, tensorboard=asked), 1234)
    assert command.argv[0] == str(folder / "bin" / "python")
    assert command.argv[command.argv.index("--logdir") + 1] == expected.format(folder)


def test_tensorboard_without_a_directory_is_refused_with_the_fix() -> None:
    with pytest.raises(Usage, match=r"give it \(--tensorboard DIR\), or add tensorboard: /out/logs"):
        tensorboard.check(prepared("", tensorboard=""))
