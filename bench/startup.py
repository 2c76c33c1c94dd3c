"""Measures how long the commands take to start, as ratios to `python -c pass`.

CPU time counts, the best of many, in turns: a busy machine slows all of them alike, and wall time would include
other processes.

python bench/startup.py [ROUNDS]
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: example/mnist:1}]}}}
"""
JOBFILE = "name: mnist\nimage: example/mnist:1\nrun: python train.py\nworker: 2\nps: 1\n"
TFYARD = "from tfyard.__main__ import main; main()"
TARGETS = {"--help": 7.0, "validate job.yaml": 7.0, "validate tfjob.yaml": 7.0}


def processor_time(code: str, *args: str) -> float:
    """CPU time of one Python process in seconds, user and system."""
    env = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "",
    }  # an installed command is compiled once, not each time
    process = subprocess.Popen([sys.executable, "-c", code, *args], env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{args} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure(rounds: int) -> dict[str, float]:
    best = dict.fromkeys(["pass", *TARGETS], float("inf"))
    for _ in range(rounds):
        best["pass"] = min(best["pass"], processor_time("pass"))
        for command in TARGETS:
            best[command] = min(best[command], processor_time(TFYARD, *command.split()))
    return best


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("tfjob.yaml").write_text(MANIFEST)
        Path("job.yaml").write_text(JOBFILE)
        best = measure(rounds)
    print(f"python -c pass: {best['pass'] * 1000:.0f} ms")
    for command, target in TARGETS.items():
        ratio = best[command] / best["pass"]
        print(
            f"tfyard {command}: {ratio:.1f}x (target {target:.0f}x) {'ok' if ratio <= target else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
