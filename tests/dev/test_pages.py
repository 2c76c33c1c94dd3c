"""The commands in docs/dev.md, in docs/tutorial.md and the demo work as written."""

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
from tests.test_pages import blocks

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


def test_the_tutorial_can_be_typed_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    """In a shell that stops at the first error. `why` ends with 3, because the job waits."""
    folder, page = tmp_path / "digits", ROOT / "docs" / "tutorial.md"
    folder.mkdir()
    told = [block for block in blocks(page) if block.mark.startswith("<!-- run by")]
    (program,) = (block.text for block in told if block.kind == "python")
    (folder / "train.py").write_text(program)
    typed = re.findall(r"^\$ (.*)$", "".join(block.text for block in told), re.MULTILINE)
    steps = "\n".join(f"{line} || test $? = 3" if line == "tfyard why big" else line for line in typed)
    box = TestBox(tmp_path)
    try:
        said = shell(f"cd {folder} && set -ex\n{steps}", tmp_path)
    finally:
        shell("tfyard dev down", tmp_path)
    assert (folder / "out" / "line.txt").read_text() == (folder / "result" / "line.txt").read_text()
    assert f"`{(folder / 'result' / 'line.txt').read_text().strip()}`" in page.read_text(encoding="utf-8")
    assert "job.yaml: train is valid" in said
    assert "worker-0 asks for 900Ti memory" in said
    assert "more: tfyard explain why.no-room" in said
    assert not box.folder.path.exists()
