"""Measures how soon `render` answers, as ratios, and how long a config of 1,000 tasks takes.

    python bench/render.py

The CPU time of whole processes counts, the best of several: on a busy machine, wall time includes other processes.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 25
LIMIT = 8.0
SECONDS = 1.0
JOB = (
    "name: cancer\nimage: tensorflow/tensorflow:2.21.0\nrun: python train.py --steps 3000\nworker: 2\nps: 1\n"
)
CONFIG = "resources: [{type: tensorflow-cluster, properties: {jobs: {ps: 200, worker: 800}}}]\n"
BIG = JOB.replace("worker: 2", "worker: 800").replace("ps: 1", "ps: 200").replace("cancer", "c")


SMALL = [["--help"], ["render", "job.yaml"], ["render", "job.yaml", "--as", "plain"]]
LARGE = [["render", name, "--as", form] for name, form in (("big.yaml", "plain"), ("big.yaml", "legacy"))]


def main() -> None:
    # Installed packages have their bytecode; a checkout gets it by the first run, unless it is forbidden.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tfyard = str(Path(sys.executable).with_name("tfyard"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in (("job.yaml", JOB), ("config.yaml", CONFIG), ("big.yaml", BIG)):
            Path(name).write_text(text)
        nothing = [sys.executable, "-c", "pass"]
        base, *small = best([nothing, *([tfyard, *words] for words in SMALL)], RUNS)
        config, *large = best([[tfyard, *words] for words in [["render", "config.yaml"], *LARGE]], 5)
    print(f"{'python -c pass':36} {base * 1000:7.1f} ms {1:6.1f}")
    for words, seconds in zip(
        [*SMALL, ["render", "config.yaml"], *LARGE], [*small, config, *large], strict=True
    ):
        print(f"{'tfyard ' + ' '.join(words):36} {seconds * 1000:7.1f} ms {seconds / base:6.1f}")
    print(f"start-up within {LIMIT} of python: {'yes' if small[1] / base <= LIMIT else 'NO'}")
    print(f"a config of 1,000 tasks within {SECONDS} s: {'yes' if config <= SECONDS else 'NO'}")


def best(commands: list[list[str]], runs: int) -> list[float]:
    """The best CPU time of each command; they run in turn, so that a busy moment affects all of them alike."""
    times = [float("inf")] * len(commands)
    for _ in range(runs):
        for i, command in enumerate(commands):
            before = spent()
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            times[i] = min(times[i], spent() - before)
    return times


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
