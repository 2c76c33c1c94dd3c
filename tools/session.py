"""A session at the terminal as a picture for the README: a run that fails, and the commands that say why.

python -m tools.session          # records it: docs/images/session.txt, and session.svg from that
python -m tools.session --draw   # only draws what was recorded
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
"""What the picture shows instead of the folder in which it was recorded."""
TRAIN = """\
import json, os, time

def batches(task):
    for step in range(1, 5):
        yield step, [0.0] * (32 if step < 3 or task == 0 else 30)

def train(task):
    for step, batch in batches(task):
        if len(batch) != 32:
            raise ValueError(f"batch {step} has {len(batch)} images instead of 32")
        print(f"Step: {step}, loss: {1 / step:.3f}", flush=True)
        time.sleep(0.3)

train(json.loads(os.environ["TF_CONFIG"])["task"]["index"])
"""
COMMANDS = (
    "tfyard run train.py --worker 2",
    "tfyard get",
    "tfyard describe train",
    "tfyard logs train worker-1 --tail 4",
    "tfyard why train",
)


def record() -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(TRAIN)
        parts = [f"$ {line}\n{_output(line, folder)}" for line in COMMANDS]
        return "\n".join(parts).replace(folder, HOME)


def _output(line: str, folder: str) -> str:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": folder, "KUBECONFIG": "", "COLUMNS": str(picture.WIDTH)}
    done = subprocess.run(
        ["/bin/sh", "-c", f"{line} 2>&1"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    return done.stdout


def draw(recorded: str) -> str:
    """Commands are bold."""
    lines = [f"\x1b[1;32m{line}\x1b[0m" if line.startswith("$ ") else line for line in recorded.splitlines()]
    return picture.draw("\n".join(lines), TITLE)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    if "--draw" not in sys.argv:
        RECORD.write_text(record())
    PICTURE.write_text(draw(RECORD.read_text()))


if __name__ == "__main__":
    main()
