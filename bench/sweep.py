"""Measures what a sweep costs: the processor time of its driver for each trial, and listing and describing a sweep
of 500 trials beside one of 10.

Only ratios within one run and processor time count: other work on the machine changes the seconds.

python bench/sweep.py
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TRAIN = """
import os
for step in range(1, 21):
    print(f"step {step} auc {1 - abs(float(os.environ['LR']) - 0.01) - 0.1 / step:.6f}", flush=True)
"""
DRIVER = """
import resource, sys
from tfyard.__main__ import main
try:
    main()
finally:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    print("spent", spent.ru_utime + spent.ru_stime, file=sys.stderr)
"""
FEW, MANY = 4, 20
PER_TRIAL = 0.2
"""Seconds of processor time that the driver may take for each trial."""
SMALL, LARGE, ROUNDS = 10, 500, 5
TARGETS = {"get --local": 2.0, "describe s": 4.0, "get --local s": 2.0}
"""Most that a sweep of 500 trials may cost beside one of 10."""


def driving(folder: Path, sampler: str, trials: int) -> float:
    """Processor time of the process that drives, without its trials."""
    shutil.rmtree(folder / ".tfyard", ignore_errors=True)
    over = ["--over", "lr=1e-4..1e-1:log", "--over", "batch=32,64"]
    words = ["sweep", "train.py", *over, "--objective", "max auc", "--prune", "median"]
    options = ["--trials", str(trials), "--sampler", sampler, "--parallel", "2", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, *words, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stderr.rpartition("spent ")[2])


def measure_driver(folder: Path) -> None:
    (folder / "train.py").write_text(TRAIN)
    for sampler in ("random", "tpe"):
        each = (driving(folder, sampler, MANY) - driving(folder, sampler, FEW)) / (MANY - FEW)
        verdict = "ok" if each <= PER_TRIAL else "MISSED"
        target = f"target {PER_TRIAL * 1000:.0f}: {verdict}"
        print(f"driver by {sampler}: {each * 1000:.0f} ms of processor time per trial, {target}")


def grown(folder: Path, trials: int) -> Path:
    """A copy of the sweep with so many trials, each with a run: copies of real ones."""
    made = folder / str(trials)
    yard = folder / ".tfyard"
    (sweep,) = (yard / "sweeps").iterdir()
    state = json.loads((sweep / "sweep.json").read_text())
    runs = sorted((yard / "runs").iterdir())
    first = state["trials"][0]
    state["spec"] |= {"trials": trials, "name": "s"}
    state["trials"] = []
    for number in range(1, trials + 1):
        name = f"s-{number:03d}-20260101-000000"
        copy = made / ".tfyard" / "runs" / name
        shutil.copytree(runs[0], copy)
        record = json.loads((copy / "run.json").read_text())
        record |= {"name": name, "trial": record["trial"] | {"sweep": "s-20260101", "number": number}}
        (copy / "run.json").write_text(json.dumps(record))
        state["trials"].append(first | {"number": number, "job": name, "objective": number / trials})
    kept = made / ".tfyard" / "sweeps" / "s-20260101"
    shutil.copytree(sweep, kept)
    (kept / "sweep.json").write_text(json.dumps(state))
    return made


def processor_time(folder: Path, *args: str) -> float:
    """Processor time of a command, user and system."""
    code = "from tfyard.__main__ import main; main()"
    command = [sys.executable, "-c", code, *args]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{args} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure_reading(folder: Path) -> None:
    driving(folder, "random", 1)
    small, large = grown(folder, SMALL), grown(folder, LARGE)
    for command, target in TARGETS.items():
        best = {small: float("inf"), large: float("inf")}
        for _ in range(ROUNDS):
            for each in best:
                best[each] = min(best[each], processor_time(each, *command.split()))
        ratio = best[large] / best[small]
        verdict = "ok" if ratio <= target else "MISSED"
        times = f"{SMALL} trials {best[small] * 1000:.0f} ms, {LARGE} trials {best[large] * 1000:.0f} ms"
        print(f"tfyard {command}: {times}")
        print(f"  ratio {ratio:.1f} (target {target}) {verdict}")


def main() -> None:
    os.environ.pop("KUBECONFIG", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        measure_driver(Path(folder))
        measure_reading(Path(folder))


if __name__ == "__main__":
    main()
