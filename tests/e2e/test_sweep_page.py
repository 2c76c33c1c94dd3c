"""docs/sweep.md: its files, its commands and its program, from the first to the last."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import DOCS
from tests.test_pages import blocks

pytestmark = [pytest.mark.processes]

TRAIN = """
import argparse, os
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--batch", type=int)
parser.add_argument("--out", type=Path, default=Path())
options = parser.parse_args()
layers = int(os.environ.get("LAYERS", "1"))
for step in range(1, 4):
    print(f"step {step} auc {0.99 - abs(options.lr - 0.01) - 0.01 * layers - 0.01 / step:.6f}", flush=True)
(options.out / "model").write_text(str(options.lr))
"""
TRIALS = 8
"""Instead of the 24 of the page; so many that something is said about importances."""


def shortened(text: str) -> str:
    return re.sub(r"\b24\b", str(TRIALS), text)


def test_every_file_command_and_program_of_the_page_works_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tfyard").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tfyard "$@"\n')
    (tmp_path / "bin" / "tfyard").chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    (here / "train.py").write_text(TRAIN)
    for block in blocks(DOCS / "sweep.md"):
        if Path(__file__).name not in block.mark:
            continue
        text = shortened(block.text)
        if block.kind == "yaml" and text.startswith("# "):
            (here / text.split("\n")[0].removeprefix("# ")).write_text(text)
        elif block.kind == "python":
            assert run(here, sys.executable, "-c", text).count("Succeeded Succeeded") == 4
        elif block.kind == "console":
            for line, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                check(here, line, printed)
    assert (here / "model").exists()
    assert "--lr 0." in (here / "best.yaml").read_text()


def run(here: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def check(here: Path, line: str, printed: str) -> None:
    command = ["/bin/sh", "-c", f'PATH="{here.parent}/bin:$PATH"; {line}']
    told = run(here, *command)
    expected = re.escape(re.sub(r" +", " ", printed)).replace(r"\.\.\.", r"[\s\S]*")
    assert re.fullmatch(expected, re.sub(r" +", " ", told)), f"$ {line}\n{told}"
