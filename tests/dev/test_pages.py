"""The commands in docs/dev.md and the demo work as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.cluster.clusters import alive
from tests.cluster.test_training import GOOD_AUC, auc
from tests.dev.running_box import TestBox

pytestmark = [pytest.mark.cluster, pytest.mark.tensorflow, pytest.mark.long]
PAGE = (ROOT / "docs" / "dev.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)


def shell(line: str, state: Path, timeout: float = 600) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "XDG_STATE_HOME": str(state), "PATH": path}
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_commands_of_the_page_train_and_leave_nothing(tmp_path: Path) -> None:
    box = TestBox(tmp_path)
    said = {}
    try:
        for line in COMMANDS[:-1]:
            said[line.split("#")[0].strip()] = shell(line, tmp_path)
        everyone = box.family()
    finally:
        shell(COMMANDS[-1], tmp_path)
    assert auc(said["tfyard dev kubectl logs cancer-chief-0"]) >= GOOD_AUC
    assert "job          default/cancer: Succeeded" in said["tfyard dev status"]
    assert alive(everyone) == []
    assert not box.folder.path.exists()


def test_the_demo_trains_and_leaves_nothing(tmp_path: Path) -> None:
    said = shell("sh examples/cancer/on-a-cluster.sh", tmp_path)
    assert auc(said) >= GOOD_AUC
    assert said.endswith("tfyard-demo is down; nothing is left of it\n")
