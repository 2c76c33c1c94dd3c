"""`tfyard sweep` on this machine: real trials, driven by the command itself."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Yard, survivors, wait_until
from tfyard.local.sweeps import SweepFolder

pytestmark = [pytest.mark.processes]

TRAIN = """
import os, sys, time
from pathlib import Path
lr, batch = float(sys.argv[1]), int(os.environ["BATCH"])
seconds = float(os.environ.get("SECONDS", "0"))
if os.environ.get("BOOM"):
    sys.exit("no data in " + os.environ["BOOM"])
if "out" in os.environ:
    Path(os.environ["out"], "model").write_text(sys.argv[1])
for step in range(1, 5):
    print(f"step {step} auc {1 - abs(lr - 0.01) - 0.1 / step:.6f}", flush=True)
    time.sleep(seconds / 4)
"""
SWEEP: dict[str, Any] = {
    "name": "s",
    "job": "job.yaml",
    "over": {"lr": [0.001, 0.01, 0.1], "batch": [32, 64]},
    "objective": "max auc",
}


def write(yard: Yard, *, env: dict[str, str] | None = None, train: str = TRAIN, **words: Any) -> None:
    yard.job(train, run=["python", "task.py", "{lr}"], **({"env": env} if env else {}))
    yard.write("sweep.yaml", json.dumps({**SWEEP, **words}))


def state(yard: Yard) -> dict[str, Any]:
    (path,) = (yard.folder / ".tfyard" / "sweeps").glob("*/sweep.json")
    read: dict[str, Any] = json.loads(path.read_bytes())
    return read


def trials(yard: Yard) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = state(yard)["trials"]
    except ValueError:  # it is not there yet
        return []
    return found


def runs(yard: Yard) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (yard.folder / ".tfyard" / "runs").glob("*/run.json")]


def words(text: str, of: str) -> list[str]:
    """The cells of the row that begins so."""
    (row,) = [line for line in text.splitlines() if line.startswith(of)]
    return row.split()


def test_a_sweep_tries_every_combination_and_is_one_row_that_knows_the_best(yard: Yard) -> None:
    write(yard, parallel=2)
    done = yard.tfyard("sweep", "sweep.yaml")
    assert done.returncode == 0, done.stderr
    assert "best: s-00" in done.stdout
    said = "batch is the variable BATCH of each trial: the job does not name {batch}"
    assert done.stdout.splitlines()[0] == said
    values = [trial["values"] for trial in trials(yard)]
    assert sorted((each["lr"], each["batch"]) for each in values) == [
        (lr, batch) for lr in (0.001, 0.01, 0.1) for batch in (32, 64)
    ]
    listed = yard.tfyard("get", "--local").stdout
    assert len(listed.splitlines()) == 2
    assert listed.splitlines()[1].endswith("6/6 done, best auc 0.975")
    typed = {"_TFYARD_COMPLETE": "bash_complete", "COMP_WORDS": "tfyard logs s-00", "COMP_CWORD": "2"}
    assert yard.tfyard(**typed).stdout.split() == [f"plain,s-00{number}" for number in range(1, 7)]
    told = json.loads(yard.tfyard("get", "s", "--local", "-o", "json").stdout)
    assert {name: told["spec"][name] for name in ("over", "objective", "parallel")} == {
        "over": SWEEP["over"],
        "objective": "max auc",
        "parallel": 2,
    }
    described = json.loads(yard.tfyard("describe", "s", "--local", "-o", "json").stdout)
    assert described["sweep"]["objective"] == "max auc"
    assert described["trials"] == told["status"]["trials"]
    assert (described["state"], told["status"]["phase"]) == ("Succeeded", "Succeeded")
    best = json.loads(yard.tfyard("best", "s", "-o", "json").stdout)
    assert best == {"objective": "max auc", **described["trials"][0]}
    assert best["trial"] == described["best"]
    assert (best["values"]["lr"], best["value"], best["step"]) == (0.01, 0.975, 4)
    table = yard.tfyard("get", "--local", "--trials", "s").stdout.splitlines()
    assert table[0].split() == ["TRIAL", "STATE", "AUC", "AT", "STEP", "LR", "BATCH", "TIME", "MESSAGE"]
    assert [line.split()[4] for line in table[1:]] == ["0.01", "0.01", "0.001", "0.001", "0.1", "0.1"]
    shown = yard.tfyard("describe", "s", "--local").stdout
    assert "by grid, over lr, batch, 6 combinations" in shown
    assert "best auc, trials 1 to 6" in shown
    assert yard.tfyard("runs").stdout.splitlines()[1].split()[1:4] == ["Succeeded", "6", "trials"]
    assert yard.tfyard("wait", "s", "--local").returncode == 0
    assert yard.tfyard("why", "s", "--local").returncode == 0
    assert "trial-1/worker-0 │ step 4 auc" in yard.tfyard("logs", "s", "--local").stdout
    assert "best auc, trials 1 to 6" in yard.tfyard("metrics", "s", "--local").stdout


def test_a_trial_is_a_run_with_its_values_and_a_folder_of_its_own(yard: Yard) -> None:
    write(yard, over={"lr": [0.001, 0.01]})
    yard.job(
        TRAIN,
        run=["python", "task.py", "{lr}"],
        env={"BATCH": "32", "out": "/out"},
        volumes={"out": {"claim": "results", "at": "/out"}},
    )
    assert yard.tfyard("sweep", "sweep.yaml", "-q").returncode == 0
    shown = yard.tfyard("describe", "s-002", "--local").stdout
    assert "--env" not in shown
    assert shown.splitlines()[1].endswith(" on this machine: lr=0.01")
    record = json.loads(yard.tfyard("describe", "s-002", "--record", "-o", "json", "--local").stdout)
    assert record["origin"]["parameters"] == {"lr": "0.01", "out": "/out", "BATCH": "32"}
    written = {path.parent.name: path.read_text() for path in yard.folder.rglob("volumes/**/model")}
    assert written == {"001": "0.001", "002": "0.01"}
    assert yard.tfyard("cp", "--local", "s-002:/out/model", "best-model").returncode == 0
    assert (yard.folder / "best-model").read_text() == "0.01"
    of_sweep = yard.tfyard("cp", "--local", "s:/out/model", "-")
    assert (of_sweep.stdout, "s-002-" in of_sweep.stderr) == ("0.01", True)
    assert "name one of them" in yard.tfyard("cp", "--local", "best-model", "s:/out/").stderr
    assert yard.tfyard("logs", "s-002", "--local", "--tail", "1").stdout.startswith("step 4 auc")


FOLDERS = (
    "each trial has a folder of its own in /out: s-…/001 and so on; "
    "`readOnly: true` at a volume lets all read the same data"
)


def test_which_volumes_each_trial_has_for_itself_is_said_before_it_starts_and_by_a_dry_run(
    yard: Yard,
) -> None:
    data = {"claim": "data", "at": "/data", "readOnly": True}
    volumes = {"out": {"claim": "results", "at": "/out"}, "data": data}
    words: dict[str, Any] = {"image": "example/train:1", "env": {"BATCH": "1"}, "volumes": volumes}
    write(yard, over={"lr": [0.01, 0.1]}, parallel=1)
    yard.job(TRAIN, run=["python", "task.py", "{lr}"], **words)
    rehearsed = yard.tfyard("sweep", "sweep.yaml", "--dry-run")
    assert (rehearsed.returncode, rehearsed.stderr) == (0, "")
    assert not (yard.folder / ".tfyard").exists()
    said = rehearsed.stdout.splitlines()
    assert said[:3] == [
        "s: 2 trials, max auc, by grid, over lr, 2 combinations, 1 at a time",
        FOLDERS,
        "s-001, the first trial: lr=0.01",
    ]
    assert said[-1] == "  python task.py 0.01"
    mounted = dict(line.removeprefix("  # ").split(" is ") for line in said if " is /" in line)
    assert mounted["/data"].endswith("/volumes/data")
    assert mounted["/out"].endswith("/001")
    told = json.loads(yard.tfyard("run", "sweep.yaml", "--dry-run", "-o", "json").stdout)
    assert (told["notes"], told["first"]["processes"][0]["command"][-1]) == ([FOLDERS], "0.01")
    (yard.folder / "data").mkdir()
    started = yard.tfyard("sweep", "sweep.yaml", "--mount", "data=data")
    assert (started.returncode, started.stdout.splitlines()[0]) == (0, FOLDERS)
    submitted = yard.tfyard("submit", "sweep.yaml", "--dry-run=client")
    assert (submitted.returncode, f"tfyard: {FOLDERS}" in submitted.stderr) == (0, True)


def test_the_best_trial_is_trained_for_real_in_the_folders_of_the_job(yard: Yard) -> None:
    write(yard, over={"lr": [0.001, 0.01]})
    yard.job(
        TRAIN,
        run=["python", "task.py", "{lr}"],
        env={"BATCH": "32", "out": "/out"},
        volumes={"out": {"claim": "results", "at": "/out"}},
    )
    assert yard.tfyard("sweep", "sweep.yaml", "-q").returncode == 0
    again = yard.tfyard("rerun", "s", "--best", "--set", "worker=2", "--local")
    assert again.returncode == 0, again.stderr
    assert "s-best" in again.stdout
    assert again.stderr.splitlines()[0] == "tfyard: best: s-002, auc 0.975: lr=0.01"
    assert "worker-1" in again.stdout
    assert (yard.folder / ".tfyard" / "volumes" / "results" / "model").read_text() == "0.01"
    assert "only sweeps have a best" in yard.tfyard("rerun", "s-001", "--best", "--local").stderr
    file = yard.write("best.yaml", yard.tfyard("best", "s", "-o", "jobfile").stdout)
    assert "- '0.01'" in file.read_text()
    assert "{lr}" not in file.read_text()
    assert yard.tfyard("validate", "best.yaml").returncode == 0
    assert sorted(row.split()[0][:6] for row in yard.tfyard("get", "--local").stdout.splitlines()[1:]) == [
        "s-2026" if time.gmtime().tm_year == 2026 else f"s-{time.gmtime().tm_year}",
        "s-best",
    ]


def test_never_more_trials_run_than_parallel_says(yard: Yard) -> None:
    write(yard, parallel=2, env={"SECONDS": "2"}, over={"lr": [0.1, 0.2], "batch": [1, 2]})
    process = yard.start("sweep", "sweep.yaml", "-q")
    most = 0
    while process.poll() is None:
        most = max(most, sum(run["phase"] in ("Running", "Preparing") for run in runs(yard)))
        time.sleep(0.02)
    assert process.wait() == 0
    assert most == 2


ON_A_GPU = """
import os, time
from pathlib import Path
trial, gpu = int(os.environ["TRIAL"]), os.environ["CUDA_VISIBLE_DEVICES"]
with open(f"busy-{gpu}", "x"):  # fails if another trial has this GPU
    Path(f"started-{trial}").touch()
while not Path(f"started-{trial + trial % 2}").exists():  # the first two, and the last two, run at once
    time.sleep(0.05)
os.remove(f"busy-{gpu}")
print(f"step 1 auc {gpu}", flush=True)
"""


def test_gpus_are_shared_out_over_all_trials_so_that_no_two_have_the_same_at_once(yard: Yard) -> None:
    write(yard, over={"trial": [1, 2, 3, 4]})
    yard.job(ON_A_GPU, run=["python", "task.py"], gpu=1, worker={"cpu": 0.1})
    done = yard.tfyard("sweep", "sweep.yaml", CUDA_VISIBLE_DEVICES="2,3")
    assert done.returncode == 0, done.stdout
    assert "4 trials, 2 at a time" in done.stdout
    assert [trial["state"] for trial in trials(yard)] == ["Succeeded"] * 4
    assert sorted({trial["objective"] for trial in trials(yard)}) == [2, 3]
    refused = yard.tfyard("sweep", "sweep.yaml", "--parallel", "3", CUDA_VISIBLE_DEVICES="2,3")
    assert "each trial requests 1 GPU, and this machine has 2, enough for 2" in refused.stderr


def test_after_ctrl_c_a_resumed_sweep_runs_what_was_cut_off_and_nothing_twice(yard: Yard) -> None:
    write(yard, parallel=2, env={"SECONDS": "2"})
    process = yard.start("sweep", "sweep.yaml")

    def has_just_begun() -> bool:
        return any(trial["state"] == "Running" and trial["number"] > 2 for trial in trials(yard))

    wait_until(lambda: sum(trial["state"] == "Succeeded" for trial in trials(yard)) >= 1, "a trial", 30)
    wait_until(has_just_begun, "another", 30)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "`tfyard resume s" in err
    (yard.folder / ".tfyard" / "runs").rename(yard.folder / "runs")  # as after Ctrl-C before the first trial
    assert words(yard.tfyard("get", "--local").stdout, "s-")[1] == "Stopped"
    (yard.folder / "runs").rename(yard.folder / ".tfyard" / "runs")
    assert not any(run["ended"] is None for run in runs(yard))
    finished = {t["number"]: t["job"] for t in trials(yard) if t["state"] == "Succeeded"}
    assert "Stopped" in {trial["state"] for trial in trials(yard)}
    resumed = yard.tfyard("resume", "s", "--local")
    assert resumed.returncode == 0, resumed.stderr
    after = {trial["number"]: trial for trial in trials(yard)}
    assert {number: after[number]["job"] for number in finished} == finished
    assert {trial["state"] for trial in after.values()} == {"Succeeded"}
    assert len(after) == 6
    ended = Counter(run["trial"]["number"] for run in runs(yard) if run["phase"] == "Succeeded")
    assert ended == Counter(range(1, 7))
    attempts = {(run["trial"]["number"], run["trial"]["attempt"]): run["name"] for run in runs(yard)}
    last = {number: name for (number, _), name in sorted(attempts.items())}
    assert len(last) < len(attempts)
    for (_, attempt), name in attempts.items():  # as when something is removed from the first ones later
        os.utime(yard.folder / ".tfyard" / "runs" / name, (2e9 - attempt, 2e9 - attempt))
    (folder,) = map(SweepFolder, (yard.folder / ".tfyard" / "sweeps").iterdir())
    kept = folder.load()
    assert kept is not None
    assert {number: run.name for number, run in folder.runs(kept.spec).items()} == last
    again = next(number for number, attempt in attempts if attempt == 2)
    shown = yard.tfyard("logs", f"s-00{again}", "--local")
    assert shown.stdout.count("step 4 auc") == 1
    first = attempts[again, 1]
    assert shown.stderr == (
        f"tfyard: s-00{again} means {last[again]}, the newest attempt at this trial; before it: {first}\n"
    )
    assert yard.tfyard("logs", first, "--local").stderr == ""
    assert yard.tfyard("delete", "s", "--local", "-y").returncode == 0
    assert runs(yard) == [], "earlier attempts, too"


SAVING = """
import os, signal, sys, time
def save(*_):
    print("saving", flush=True)
    time.sleep(float(os.environ["SAVES"]))
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
for step in range(1, 6000):
    print(f"step {step} auc 0.5", flush=True)
    time.sleep(0.1)
"""


def saving(yard: Yard, seconds: float) -> Any:
    """A sweep whose two running trials take so long to save."""
    write(yard, parallel=2, over={"lr": [0.1, 0.2]}, train=SAVING, env={"SAVES": str(seconds)})
    process = yard.start("sweep", "sweep.yaml", "-q")
    wait_until(lambda: sum(bool(trial["curve"]) for trial in trials(yard)) == 2, "two that print", 60)
    return process


def lines(yard: Yard) -> list[str]:
    return [
        line
        for name in ("s-001", "s-002")
        for line in yard.tfyard("logs", name, "--local").stdout.split("\n")
    ]


@pytest.mark.parametrize("is_ctrl_c", [True, False])
def test_trials_of_a_sweep_that_is_stopped_may_save(yard: Yard, is_ctrl_c: bool) -> None:
    process = saving(yard, 1)
    if is_ctrl_c:
        process.send_signal(signal.SIGINT)
    else:
        assert yard.tfyard("stop", "s", "--local").returncode == 0
    _, err = process.communicate(timeout=60)
    assert ("press Ctrl-C again" in err) is is_ctrl_c
    assert lines(yard).count("saved") == 2


def test_a_second_ctrl_c_kills_the_trials(yard: Yard) -> None:
    process = saving(yard, 600)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: lines(yard).count("saving") == 2, "both save", 60)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "stopping at once" in err
    assert "`tfyard resume s-" in err
    assert process.returncode == 130
    assert survivors(str(yard.folder)) == []
    assert lines(yard).count("saved") == 0


def test_a_sweep_is_stopped_from_another_terminal_and_deleted_with_its_trials(yard: Yard) -> None:
    write(yard, parallel=2, env={"SECONDS": "20"})
    process = yard.start("sweep", "sweep.yaml", "-q")
    wait_until(lambda: sum(trial["state"] == "Running" for trial in trials(yard)) == 2, "two trials", 30)
    refused = yard.tfyard("delete", "s", "--local", "-y")
    assert refused.returncode != 0
    assert "tfyard stop" in refused.stderr
    name = state(yard)["trials"][0]["job"]
    whole = words(yard.tfyard("get", "--local").stdout, "s-")[0]
    assert yard.tfyard("stop", whole, "--local").returncode == 0
    assert process.wait(30) != 0
    assert survivors(str(yard.folder)) == []
    assert words(yard.tfyard("get", "--local").stdout, "s-")[1] == "Stopped"
    assert (yard.folder / ".tfyard" / "runs" / name).exists()
    assert yard.tfyard("delete", whole, "--local", "-y").returncode == 0
    assert list((yard.folder / ".tfyard" / "runs").iterdir()) == []
    assert list((yard.folder / ".tfyard" / "sweeps").iterdir()) == []


@pytest.mark.parametrize(
    "at", [pytest.param(0.3, marks=pytest.mark.long), 0.9, pytest.param(1.6, marks=pytest.mark.long)]
)
def test_a_driver_that_is_killed_leaves_no_trial_running_and_forgets_none(yard: Yard, at: float) -> None:
    write(yard, parallel=2, env={"SECONDS": "0.4"})
    process = yard.start("sweep", "sweep.yaml", "-q")
    wait_until(lambda: bool(trials(yard)), "a planned trial", 30)
    time.sleep(at)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(
        lambda: not any(run["ended"] is None and run["pid"] in pids() for run in runs(yard)), "ends", 30
    )
    resumed = yard.tfyard("resume", "s", "--local", "-q")
    assert resumed.returncode == 0, resumed.stderr
    ended = Counter(run["trial"]["number"] for run in runs(yard) if run["phase"] == "Succeeded")
    assert ended == Counter(range(1, 7))


DEADLY = """
import os, signal, sys, threading
from tfyard.__main__ import main
from tfyard.backends.local import run_directory
from tfyard.sdk import starting

left = int(sys.argv.pop(1))

def one_less(wait):
    global left
    left -= 1
    if left == 0 and wait:
        threading.Timer(wait, os.kill, (os.getpid(), signal.SIGKILL)).start()
    elif left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def deadly(act, *waits):
    def call(*args, **options):
        for wait in waits:
            one_less(wait)
        result = act(*args, **options)
        one_less(0)
        return result
    return call

run_directory.replace_file = deadly(run_directory.replace_file, 0)
starting._answer = deadly(starting._answer, 0, 0.1, 0.2)  # the process of the trial is there, or has its order
main()
"""


@pytest.mark.long
def test_a_driver_that_is_killed_at_each_write_starts_no_trial_twice(yard: Yard) -> None:
    write(yard, parallel=2, over={"lr": [0.1, 0.01, 0.001]}, env={"BATCH": "1", "SECONDS": "0.3"})
    for kill_at in itertools.count(1):
        shutil.rmtree(yard.folder / ".tfyard", ignore_errors=True)
        command = [sys.executable, "-c", DEADLY, str(kill_at), "sweep", "sweep.yaml", "-q"]
        code = subprocess.run(command, cwd=yard.folder, capture_output=True, check=False).returncode
        if code == 0:
            break
        assert code == -signal.SIGKILL
        if not list(yard.folder.glob(".tfyard/sweeps/*/sweep.json")):
            continue  # there is no sweep yet, and none of its trials
        resumed = yard.tfyard("resume", "s", "--local", "-q")
        assert resumed.returncode == 0 or "has ended (Succeeded)" in resumed.stderr, (kill_at, resumed.stderr)
        ended = Counter(run["trial"]["number"] for run in runs(yard) if run["phase"] == "Succeeded")
        assert ended == Counter(range(1, 4)), kill_at
    assert kill_at > 20


def pids() -> set[int]:
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


def test_three_failures_at_the_start_end_the_sweep_with_the_cause_of_the_first(yard: Yard) -> None:
    write(yard, parallel=1, env={"BOOM": "/data"})
    done = yard.tfyard("sweep", "sweep.yaml")
    assert done.returncode == 1
    assert len(trials(yard)) == 3
    assert "the first 3 trials have failed" in done.stdout
    why = yard.tfyard("why", "s", "--local")
    assert why.returncode == 1
    assert why.stdout.splitlines()[0].count("no data in /data") == 1


def test_a_metric_that_the_first_trial_never_prints_ends_the_sweep_with_those_that_it_prints(
    yard: Yard,
) -> None:
    write(yard, parallel=1, objective="max acu")
    done = yard.tfyard("sweep", "sweep.yaml")
    assert done.returncode == 1
    assert len(trials(yard)) == 1
    assert "printed no metric called 'acu'" in done.stdout
    assert "auc" in done.stdout


def test_a_trial_that_fails_is_tried_again_only_if_that_is_asked_for(yard: Yard) -> None:
    train = TRAIN.replace(
        "for step",
        'if batch == 64 and not Path(f"{lr}").exists():\n    Path(f"{lr}").touch()\n    sys.exit(3)\nfor step',
    )
    write(yard, over={"lr": [0.01, 0.1], "batch": [32, 64]}, train=train, retryTrials=1, parallel=1)
    assert yard.tfyard("sweep", "sweep.yaml", "-q").returncode == 0
    assert [(t["state"], t["attempt"]) for t in trials(yard)] == [
        ("Succeeded", 1),
        ("Succeeded", 2),
        ("Succeeded", 1),
        ("Succeeded", 2),
    ]


def test_a_sweep_that_is_out_of_time_stops_its_trials_and_keeps_the_best(yard: Yard) -> None:
    train = TRAIN.replace("seconds / 4", "0 if batch == 32 else 60")
    write(yard, parallel=1, deadline="8s", train=train)
    done = yard.tfyard("sweep", "sweep.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the deadline was over before" in done.stdout
    assert survivors(str(yard.folder)) == []


def test_trials_that_are_worse_than_the_others_are_stopped_and_shown_as_pruned(yard: Yard) -> None:
    train = TRAIN.replace("seconds / 4", "0 if lr < 0.5 else 5")
    write(yard, over={"lr": [0.01, 0.02, 0.03, 0.04, 0.9]}, train=train, prune="median", parallel=1)
    yard.job(train, run=["python", "task.py", "{lr}"], env={"BATCH": "1"})
    assert yard.tfyard("sweep", "sweep.yaml", "-q").returncode == 0
    assert [trial["state"] for trial in trials(yard)] == ["Succeeded"] * 4 + ["Pruned"]
    assert "step 1 auc" in yard.tfyard("logs", "s-005", "--local").stdout


def test_a_sweep_whose_folder_somebody_removes_ends_its_trials_and_says_so(yard: Yard) -> None:
    write(yard, parallel=2, env={"SECONDS": "60"})
    process = yard.start("sweep", "sweep.yaml", "-q")
    wait_until(lambda: sum(trial["state"] == "Running" for trial in trials(yard)) == 2, "two trials", 30)
    shutil.rmtree(yard.folder / ".tfyard" / "sweeps")
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.strip()[:20], err.strip()[-11:]) == (
        1,
        "tfyard: the sweep s-",
        "was deleted",
    )
    assert survivors(str(yard.folder)) == []


def test_a_trial_whose_run_was_deleted_is_missing_and_the_others_are_shown(yard: Yard) -> None:
    write(yard, over={"lr": [0.01, 0.1]}, parallel=1)
    yard.job(TRAIN, run=["python", "task.py", "{lr}"], env={"BATCH": "1"})
    assert yard.tfyard("sweep", "sweep.yaml", "-q").returncode == 0
    assert yard.tfyard("delete", "s-001", "--local", "-y").returncode == 0
    logs = yard.tfyard("logs", "s", "--local")
    assert (logs.returncode, logs.stdout.count("trial-2/"), logs.stderr) == (0, 4, "")
    assert yard.tfyard("delete", "s-002", "--local", "-y").returncode == 0
    assert yard.tfyard("why", "s", "--local").stdout.endswith(" has succeeded: 2/2 done, best auc 0.975\n")


def test_values_cannot_command_the_terminal(yard: Yard) -> None:
    write(yard, over={"lr": [0.01], "word": ["\x1b]0;title\x07"]})
    yard.job(TRAIN, run=["python", "task.py", "{lr}"], env={"BATCH": "1"})
    done = yard.tfyard("sweep", "sweep.yaml")
    commands = (
        ("get", "--trials", "s", "--local"),
        ("best", "s"),
        ("describe", "s", "--local"),
        ("get", "--local"),
    )
    shown = [done.stdout, *(yard.tfyard(*words).stdout for words in commands)]
    assert not any("\x1b" in each or "\x07" in each for each in shown)
    assert "^[]0;title" in shown[1]


def test_a_sweep_whose_state_is_damaged_is_named_and_its_trials_are_runs(yard: Yard) -> None:
    write(yard, over={"lr": [0.01]})
    yard.job(TRAIN, run=["python", "task.py", "{lr}"], env={"BATCH": "1"})
    assert yard.tfyard("sweep", "sweep.yaml", "-q").returncode == 0
    (path,) = (yard.folder / ".tfyard" / "sweeps").glob("*/sweep.json")
    path.write_bytes(path.read_bytes()[:100])
    listed = yard.tfyard("get", "--local")
    assert listed.returncode == 0
    assert [line.split()[1] for line in listed.stdout.splitlines()[1:]] == ["Succeeded"]
    assert listed.stderr.startswith(f"tfyard: the sweep {path.parent.name} is skipped: its state (")


def test_a_sweep_is_alone_in_its_file(yard: Yard) -> None:
    write(yard)
    text = (yard.folder / "sweep.yaml").read_text()
    yard.write("sweep.yaml", f"{text}\n---\n{text}")
    for command in ("sweep", "run", "validate"):
        refused = yard.tfyard(command, "sweep.yaml")
        assert refused.returncode == 1
        assert "sweep.yaml:3:1: error: the file has 2 documents, and a sweep is alone" in refused.stderr


def test_tfyard_run_of_a_sweep_file_runs_the_sweep(yard: Yard) -> None:
    write(yard, over={"lr": [0.01]})
    yard.job(TRAIN, run=["python", "task.py", "{lr}"], env={"BATCH": "1"})
    done = yard.tfyard("run", "sweep.yaml")
    assert done.returncode == 0, done.stderr
    assert "best: s-001" in done.stdout


def test_a_program_reads_a_sweep_line_by_line_and_its_end_in_the_words_of_describe(yard: Yard) -> None:
    write(yard, over={"lr": [0.01]})
    yard.job(TRAIN, run=["python", "task.py", "{lr}"], env={"BATCH": "1"})
    done = yard.tfyard("sweep", "sweep.yaml", "-o", "json")
    *events, end = map(json.loads, done.stdout.splitlines())
    assert [event["event"] for event in events][:2] == ["change", "progress"]
    assert end == json.loads(yard.tfyard("describe", "s", "--local", "-o", "json").stdout)


def test_a_script_is_swept_by_options_alone(yard: Yard) -> None:
    yard.write("train.py", TRAIN)
    done = yard.tfyard(
        "sweep",
        "train.py",
        "--over",
        "lr=0.01,0.1",
        "--over",
        "batch=1..2",
        "--objective",
        "max auc",
        "--sampler",
        "grid",
        "--",
        "{lr}",
    )
    assert done.returncode == 0, done.stderr
    assert [trial["values"] for trial in trials(yard)] == [
        {"lr": lr, "batch": batch} for lr in (0.01, 0.1) for batch in (1, 2)
    ]


def test_the_trials_of_a_script_write_to_folders_of_their_own_as_on_a_cluster(yard: Yard) -> None:
    yard.write(
        "train.py",
        """import os, pathlib
out = pathlib.Path(os.environ.get("TFYARD_OUT", "out"), "model")
assert not out.exists(), "of another trial"
out.write_text(os.environ["LR"])
print("step 1 auc", os.environ["LR"])
""",
    )
    options = ("train.py", "--over", "lr=0.1,0.2", "--objective", "max auc")
    assert "/volumes/train-out/train-sweep-" in yard.tfyard("sweep", *options, "--dry-run").stdout
    done = yard.tfyard("sweep", *options)
    assert done.returncode == 0, done.stdout
    assert "each trial has a folder of its own in /out: train-sweep-" in done.stdout
    assert yard.tfyard("cp", "--local", "train-sweep:/out/model", "-").stdout == "0.2"
    assert not (yard.folder / "out").exists()


def test_several_mistakes_are_reported_before_anything_starts(yard: Yard) -> None:
    write(yard, objective="most auc", over={"lr": {"from": 1, "to": 0.1}}, sampler="grid", trials=2)
    done = yard.tfyard("sweep", "sweep.yaml")
    assert done.returncode == 1
    for part in ("sweep.yaml:", "objective", "over.lr"):
        assert part in done.stderr
    assert not (yard.folder / ".tfyard").exists()


def test_old_sweeps_are_removed_with_their_trials_and_the_trials_of_kept_ones_stay(yard: Yard) -> None:
    write(yard, over={"lr": [0.1, 0.2]})
    yard.job(TRAIN, run=["python", "task.py", "{lr}"], env={"BATCH": "1"})
    for _ in range(2):
        assert yard.tfyard("sweep", "sweep.yaml", "-q", TFYARD_KEEP_RUNS="1").returncode == 0
        first = next((yard.folder / ".tfyard" / "sweeps").iterdir())
        assert len(runs(yard)) == 2
    assert "removed s-20" in yard.tfyard("sweep", "sweep.yaml", TFYARD_KEEP_RUNS="1").stdout
    assert not first.exists()
