"""How soon `render` answers, as ratios, and how long a config of 1,000 tasks takes.

    python bench/render.py

CPU time of whole processes, the best of several: on a busy machine the clock on the wall measures others.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 15
LIMIT = 8.0
SECONDS = 1.0
JOB = (
    "name: cancer\nimage: tensorflow/tensorflow:2.21.0\nrun: python train.py --steps 3000\nworker: 2\nps: 1\n"
)
CONFIG = "resources: [{type: tensorflow-cluster, properties: {jobs: {ps: 200, worker: 800}}}]\n"
BIG = JOB.replace("worker: 2", "worker: 800").replace("ps: 1", "ps: 200").replace("cancer", "c")


def main() -> None:
    # Installed packages have their bytecode; a checkout gets it by the first run, unless it is forbidden.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tfyard = str(Path(sys.executable).with_name("tfyard"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in (("job.yaml", JOB), ("config.yaml", CONFIG), ("big.yaml", BIG)):
            Path(name).write_text(text)
        base = cost([sys.executable, "-c", "pass"])
        print(f"python -c pass                    {base * 1000:7.1f} ms    1.0")
        ratios = [
            row(" ".join(words), cost([tfyard, *words]), base)
            for words in (["--help"], ["render", "job.yaml"], ["render", "job.yaml", "--as", "plain"])
        ]
        large = [
            row(" ".join(words), cost([tfyard, *words], 5), base)
            for words in (
                ["render", "config.yaml"],
                ["render", "big.yaml", "--as", "plain"],
                ["render", "big.yaml", "--as", "legacy"],
            )
        ]
    print(f"start-up within {LIMIT}: {'yes' if ratios[1] <= LIMIT else 'NO'}")
    print(f"1,000 tasks within {SECONDS} s: {'yes' if large[0] * base <= SECONDS else 'NO'}")


def row(name: str, seconds: float, base: float) -> float:
    print(f"tfyard {name:26} {seconds * 1000:7.1f} ms {seconds / base:6.1f}")
    return seconds / base


def cost(command: list[str], runs: int = RUNS) -> float:
    best = float("inf")
    for _ in range(runs):
        before = spent()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        best = min(best, spent() - before)
        time.sleep(0.05)
    return best


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
