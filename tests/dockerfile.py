"""What the operator's Dockerfile does, done in a folder: there is no Docker."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.running import ROOT

Instruction = tuple[str, str]


def instructions(dockerfile: Path = ROOT / "Dockerfile") -> list[Instruction]:
    lines = [line for line in dockerfile.read_text().splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def build(target: Path) -> None:
    """Every COPY and RUN of the first stage, with `target`/opt for /opt/tfyard."""
    target.mkdir(exist_ok=True)
    inside = {
        "/tmp/": f"{target}/",
        "/opt/tfyard": str(target / "opt"),
    }  # in this order: target may be in /tmp
    for word, rest in instructions():
        for path, here in inside.items():
            rest = rest.replace(path, here)
        if word == "COPY" and not rest.startswith("--from"):
            source, to = rest.split()
            (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, to)
        elif word == "RUN":
            command = rest.replace("python", sys.executable, 1)
            subprocess.run(command, shell=True, check=True, capture_output=True, cwd=target)


def environment() -> dict[str, str]:
    """The ENV of the last stage."""
    pairs = [pair for word, rest in instructions() if word == "ENV" for pair in rest.split()]
    return dict(pair.split("=", 1) for pair in pairs)


def settings() -> dict[str, Any]:
    """What a container of the image runs by default."""
    last = dict(instructions())
    return {
        "Env": [f"{name}={value}" for name, value in environment().items()],
        "User": last["USER"],
        "Entrypoint": json.loads(last["ENTRYPOINT"]),
        "Cmd": json.loads(last["CMD"]),
    }
