"""The example with BackupAndRestore: stopped, resumed and restarted, it goes on from its last epoch."""

import re
import shutil
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.e2e.conftest import Yard, wait_until

pytestmark = [pytest.mark.processes, pytest.mark.tensorflow, pytest.mark.long]


def epochs(log: Path) -> list[int]:
    text = log.read_text() if log.exists() else ""
    return [int(number) for number in re.findall(r"^Epoch: (\d+),", text, re.MULTILINE)]


def test_the_epochs_go_on_after_a_stop_a_resume_and_a_restart(yard: Yard) -> None:
    shutil.copytree(ROOT / "examples" / "resume", yard.folder, dirs_exist_ok=True)
    first = yard.start("run", "job.yaml", "-q")
    runs = yard.folder / ".tfyard" / "runs"
    wait_until(
        lambda: any(len(epochs(log)) >= 2 for log in runs.glob("*/logs/worker-0.1.log")), "two epochs", 60
    )
    assert yard.tfyard("stop", "spirals", "--local").returncode == 0
    assert first.wait(60) == 130
    (one,) = runs.glob("*/logs/worker-0.1.log")
    second = yard.start("resume", "spirals", "--local", "-q")
    wait_until(lambda: len(list(runs.iterdir())) == 2, "a second run", 60)
    (two,) = [path / "logs" / "worker-0.1.log" for path in runs.iterdir() if path != one.parent.parent]
    wait_until(lambda: len(epochs(two)) >= 2, "two more epochs", 60)
    restarted = yard.tfyard("restart", "spirals", "worker-0", "--local")
    assert restarted.stdout == "running again: worker-0\n", restarted.stderr
    out, err = second.communicate(timeout=120)
    assert second.returncode == 0, out + err
    three = two.with_name("worker-0.2.log")
    assert [*epochs(one), *epochs(two), *epochs(three)] == [*range(1, 31)]
    assert all("Going on from" in log.read_text() for log in (two, three))
    assert "Done after 30 epochs" in three.read_text()
    (model,) = (yard.folder / ".tfyard" / "volumes").glob("**/model.keras")
    assert model.stat().st_size > 0
