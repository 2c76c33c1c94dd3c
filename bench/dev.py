"""Measures how long `tfyard dev up` takes until it is ready, as a ratio to the bare control plane; and its memory.

Both are measured in turns, and the best of several counts: a busy machine slows both alike.

python bench/dev.py [ROUNDS]
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from tfyard.controlplane.control_plane import CONTROLLERS, ControlPlane

TARGET = 2.5
NAME = "tfyard-bench"


def bare() -> float:
    started = time.monotonic()
    with ControlPlane(controllers=CONTROLLERS):
        return time.monotonic() - started


def tfyard(*words: str) -> str:
    command = [sys.executable, "-m", "tfyard", "dev", *words, "--name", NAME]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return done.stdout


def cluster() -> tuple[float, int]:
    started = time.monotonic()
    tfyard("up")
    try:
        took = time.monotonic() - started
        return took, int(json.loads(tfyard("status", "-o", "json"))["memory"])
    finally:
        tfyard("down")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        results = [(bare(), *cluster()) for _ in range(rounds)]
    alone, whole = min(result[0] for result in results), min(result[1] for result in results)
    print(f"bare control plane, until ready: {alone:.1f} s")
    print(f"tfyard dev up: {whole:.1f} s, {whole / alone:.1f}x (goal: {TARGET}x)")
    print(f"memory: {min(result[2] for result in results) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
