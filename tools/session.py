"""Draws a terminal session for docs/terminal.md: a run that fails, and the commands that explain it.

python -m tools.session          # records docs/images/session.txt, and draws session.svg from it
python -m tools.session --draw   # only draws the recorded session
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import picture

IMAGES = Path(__file__).parents[1] / "docs" / "images"
RECORD, PICTURE = IMAGES / "session.txt", IMAGES / "session.svg"
TITLE = "a run that fails"
HOME = "/home/ada/digits"
"""Folder that the picture shows instead of the one in which it was recorded."""
TRAIN = """\
import json, os, time

task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
cache = []
for step in range(1, 6):
    print(f"Step: {step}, loss: {1 / step:.3f}", flush=True)
    if task == 1:
        cache.append(bytearray(60_000_000))
    time.sleep(0.5)
"""
COMMANDS = (
    "tfyard run train.py --worker 2 --memory 150Mi -q",
    "tfyard get",
    "tfyard describe train | head -14",
    "tfyard logs train worker-1",
    "tfyard why train",
)


def record() -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(TRAIN)
        parts = [f"$ {line}\n{_output(line, folder).strip()}\n" for line in COMMANDS]
        return "".join(_fitted(line) for line in "\n".join(parts).replace(folder, HOME).splitlines())


def _fitted(line: str) -> str:
    line = line.rstrip()
    return f"{line if len(line) <= picture.WIDTH else f'{line[: picture.WIDTH - 1]}…'}\n"


def _output(line: str, folder: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": folder, "KUBECONFIG": "", "COLUMNS": str(picture.WIDTH)}
    done = subprocess.run(
        ["/bin/sh", "-c", f"{line} 2>&1"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    return done.stdout


def draw(recorded: str) -> str:
    """An SVG of a recorded session; commands are bold."""
    lines = [f"\x1b[1;32m{line}\x1b[0m" if line.startswith("$ ") else line for line in recorded.splitlines()]
    return picture.draw("\n".join(lines), TITLE)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    if "--draw" not in sys.argv:
        RECORD.write_text(record())
    PICTURE.write_text(draw(RECORD.read_text()))


if __name__ == "__main__":
    main()
