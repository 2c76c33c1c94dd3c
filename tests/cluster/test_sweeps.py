"""Sweeps on a whole cluster: driven by the command that is followed or by a Job, killed, stopped and resumed."""

import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cli.running import ROOT
from tests.cluster.clusters import Cluster, until
from tests.cluster.jobs import Jobs
from tests.cluster.test_training import GOOD_AUC

pytestmark = pytest.mark.cluster

TRAIN = """
import os, pathlib, sys, time
lr, seconds, out = float(sys.argv[1]), float(os.environ["SECONDS"]), pathlib.Path("/out")
with (out / "times").open("a") as times:
    times.write(f"{time.time()} ")
(out / "model").write_text(f"{lr} {os.environ.get('BATCH')}")
for step in range(1, 5):
    print(f"step {step} auc {1 - abs(lr - 0.01) - 0.1 / step:.6f}", flush=True)
    time.sleep(seconds / 4)
with (out / "times").open("a") as times:
    times.write(f"{time.time()}\\n")
"""
JOB = """
name: train
image: example/train:1
code: src
run: [python, train.py, "{lr}"]
worker: {cpu: 50m, memory: 64Mi}
env: {SECONDS: "0"}
volumes: {out: {claim: results, at: /out, size: 1Gi}}
"""
SWEEP: dict[str, Any] = {
    "name": "s",
    "job": "job.yaml",
    "over": {"lr": [0.001, 0.01], "batch": [32, 64]},
    "objective": "max auc",
    "parallel": 2,
}
TRIALS = {"s-001", "s-002", "s-003", "s-004"}


def write(jobs: Jobs, *, train: str = TRAIN, seconds: float = 0, job: str = JOB, **words: Any) -> None:
    source = jobs.folder / "src"
    source.mkdir(exist_ok=True)
    (source / "train.py").write_text(train)
    (jobs.folder / "job.yaml").write_text(job.replace('SECONDS: "0"', f'SECONDS: "{seconds}"'))
    (jobs.folder / "sweep.yaml").write_text(json.dumps({**SWEEP, **words}))


@pytest.fixture(scope="module", autouse=True)
def unbound(_cluster: Cluster) -> Iterator[None]:
    """`tfyard dev` binds the role of drivers for all namespaces; elsewhere, administrators do."""
    name = "clusterrolebinding/tfyard-sweep"
    found = _cluster.kubectl("get", name, "-o", "yaml", "--ignore-not-found")
    _cluster.kubectl("delete", name, "--ignore-not-found")
    yield
    if found:
        _cluster.apply(yaml.safe_load(found))


def bind(jobs: Jobs) -> None:
    account = f"{jobs.namespace}:tfyard-sweep"
    role = "--clusterrole=tfyard-sweep"
    jobs.kubectl("create", "rolebinding", "tfyard-sweep", role, f"--serviceaccount={account}")


def submit(jobs: Jobs, *options: str) -> str:
    """What is printed. A Job drives the sweep."""
    done = jobs.tfyard("submit", "sweep.yaml", *options)
    assert done.code == 0, done.err
    return done.out


def trials(jobs: Jobs) -> dict[str, Any]:
    found = jobs.get("tfjobs", "-l", "tfyard.dev/sweep=s")["items"]
    return {each["metadata"]["name"]: each for each in found}


def state(jobs: Jobs) -> dict[str, Any]:
    done = jobs.tfyard("describe", "s", "-o", "json")
    assert done.code == 0, done.err
    return dict(json.loads(done.out))


def states(jobs: Jobs) -> list[str]:
    return [trial["state"] for trial in state(jobs)["trials"]]


def until_phase(jobs: Jobs, phase: str, timeout: float = 240) -> dict[str, Any]:
    until(lambda: state(jobs)["state"] == phase, timeout)
    return state(jobs)


def runs(jobs: Jobs) -> list[list[float]]:
    """Start and end of every program that has run, as it has written them."""
    files = [*jobs.claim("results").rglob("times")]
    return [
        [float(each) for each in line.split()] for file in files for line in file.read_text().splitlines()
    ]


def most_at_once(spans: list[list[float]]) -> int:
    return max(sum(begin <= at <= end for begin, end in spans) for at, _ in spans)


def test_a_sweep_that_is_followed_is_one_row_whose_trials_are_tfjobs_with_their_values(jobs: Jobs) -> None:
    write(jobs)
    done = jobs.tfyard("submit", "sweep.yaml", "--follow")
    assert done.code == 0, done.err
    assert "best: s-00" in done.out
    listed = jobs.tfyard("get").out.splitlines()
    assert len(listed) == 2, listed
    assert listed[1].endswith("4/4 done, best auc 0.975")
    found = trials(jobs)
    assert found.keys() == TRIALS
    (owner,) = found["s-003"]["metadata"]["ownerReferences"]
    assert owner["uid"] == jobs.get("configmap", "s")["metadata"]["uid"]
    assert json.loads(found["s-003"]["metadata"]["annotations"]["tfyard.dev/values"]) == {
        "lr": 0.01,
        "batch": 32,
    }
    code = [
        each
        for each in jobs.get("configmaps")["items"]
        if "tfyard.dev/code" in each["metadata"].get("labels", {})
    ]
    assert len(code) == 1, "it was sent once"
    assert sorted(each.read_text() for each in jobs.claim("results").rglob("model")) == [
        "0.001 32",
        "0.001 64",
        "0.01 32",
        "0.01 64",
    ]
    assert len(runs(jobs)) == 4
    assert most_at_once(runs(jobs)) <= 2
    ranked = [line.split()[0] for line in jobs.tfyard("get", "--trials", "s").out.splitlines()[1:]]
    assert ranked == ["s-003", "s-004", "s-001", "s-002"]
    assert jobs.tfyard("logs", "s-001").out.count("step") == 4
    assert jobs.tfyard("logs", "s").out.count("trial-4/worker-0") == 4
    assert jobs.tfyard("why", "s").out == "s has succeeded: 4/4 done, best auc 0.975\n"
    best = yaml.safe_load(jobs.tfyard("best", "s", "-o", "jobfile").out)
    assert (best["run"], best["env"]["BATCH"], "labels" in best) == (
        ["python", "train.py", "0.01"],
        "32",
        False,
    )
    assert jobs.tfyard("cp", "s-003:/out/model", "brought").code == 0
    assert (jobs.folder / "brought").read_text() == "0.01 32"
    assert "0.975 at step 4" in jobs.tfyard("compare", "s-001", "s-003").out
    assert jobs.tfyard("rerun", "s", "--best", "--yes").code == 0
    jobs.until_phase("s-best", "Succeeded")
    assert (jobs.claim("results") / "model").read_text() == "0.01 32", "not in the folder of a trial"
    assert jobs.tfyard("delete", "s", "--yes", "--wait").code == 0
    assert (trials(jobs), jobs.phase("s-best")) == ({}, "Succeeded")


def test_a_job_drives_a_sweep_that_nobody_follows_and_it_is_stopped_and_resumed(jobs: Jobs) -> None:
    write(jobs, seconds=3)
    refused = jobs.tfyard("submit", "sweep.yaml")
    assert (refused.code, jobs.get("configmap,tfjob,job,pvc", "-l", "tfyard.dev/sweep")["items"]) == (1, [])
    (line,) = [part for part in refused.err.split("`") if part.startswith("kubectl create rolebinding")]
    jobs.cluster.kubectl(*shlex.split(line)[1:])
    assert "sweep/s submitted" in submit(jobs)
    until(lambda: "Running" in states(jobs))
    stopped = jobs.tfyard("stop", "s", "--yes", "--wait")
    assert stopped.code == 0, stopped.err
    assert state(jobs)["state"] == "Stopped"
    assert {each["status"]["phase"] for each in trials(jobs).values()} <= {"Suspended", "Succeeded"}
    assert "step 1 auc" in jobs.tfyard("logs", "s-001").out, "its pod was ended in place"
    assert jobs.tfyard("resume", "s", "--yes").code == 0
    waited = jobs.tfyard("wait", "s", "--timeout", "240s")
    assert waited.code == 0, waited.err
    assert states(jobs) == ["Succeeded"] * 4
    assert most_at_once([span for span in runs(jobs) if len(span) == 2]) <= 2
    newest = jobs.tfyard("logs", "s-001")
    ran_again = "s-001-2" in trials(jobs)
    assert (newest.out.count("step"), "s-001 means s-001-2" in newest.err) == (4, ran_again)
    drivers = jobs.get("jobs", "-l", "tfyard.dev/sweep=s")["items"]
    until(lambda: all(each.get("status", {}).get("succeeded") for each in jobs.get("jobs")["items"]))
    assert len(drivers) == 2, "one until it was stopped, and one afterwards"


DYING = """
import os, sys
from tfyard.kube.sync import SyncClient
sent, left, when = SyncClient.send, int(sys.argv[1]), sys.argv[2]

def send(self, request, *rest):
    global left
    left -= request.method != "GET"
    if left == 0 and request.method != "GET":
        if when == "after":
            sent(self, request, *rest)
        os._exit(9)
    return sent(self, request, *rest)

SyncClient.send = send
from tfyard.remote.sweeps.__main__ import main
sys.exit(main("s"))
"""
LIVES = ((2, "after"), (3, "before"), (3, "after"))
"""How many writes a driver lives for: the first is that by which it takes the sweep over."""


@pytest.mark.long
def test_drivers_that_are_killed_at_every_write_start_each_trial_once_and_forget_none(jobs: Jobs) -> None:
    write(jobs, over={"lr": [0.001, 0.01, 0.02]}, parallel=1)
    with_no_driver(jobs)
    deaths = 0
    for writes, when in itertools.islice(itertools.cycle(LIVES), 60):
        done = drive_here(jobs, DYING, str(writes), when)
        if done.returncode == 0:
            break
        assert done.returncode == 9, done.stderr
        deaths += 1
    assert deaths >= 5
    assert state(jobs)["state"] == "Succeeded"
    assert trials(jobs).keys() == {"s-001", "s-002", "s-003"}
    assert len(runs(jobs)) == 3
    assert most_at_once(runs(jobs)) == 1


def with_no_driver(jobs: Jobs) -> None:
    """A sweep that waits for its driver: the namespace has no room for its Job."""
    bind(jobs)
    jobs.kubectl("create", "quota", "none", "--hard=count/jobs.batch=0")
    until(lambda: "hard" in jobs.get("quota", "none").get("status", {}))
    done = jobs.tfyard("submit", "sweep.yaml")
    assert (done.code, "exceeded quota" in done.err, "the sweep is there: `tfyard resume s`" in done.err) == (
        1,
        True,
        True,
    )


def drive_here(jobs: Jobs, program: str, *words: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-c", program, *words]
    return subprocess.run(line, env=environment(jobs), capture_output=True, text=True, timeout=300)


def environment(jobs: Jobs) -> dict[str, str]:
    """That of a pod whose namespace is that of the test."""
    own = jobs.folder / "kubeconfig"
    own.write_text(jobs.cluster.kubeconfig.read_text())
    jobs.cluster.kubectl(
        "config", "set-context", "--current", "--namespace", jobs.namespace, f"--kubeconfig={own}"
    )
    return {**os.environ, "KUBECONFIG": str(own)}


@pytest.mark.long
def test_a_driver_that_slept_finds_another_one_and_waits_until_that_is_silent(jobs: Jobs) -> None:
    write(jobs, seconds=8, parallel=1)
    with_no_driver(jobs)
    line = [sys.executable, "-m", "tfyard.remote.sweeps", "s"]
    env, log = environment(jobs), jobs.folder / "first.log"
    with log.open("w") as out, subprocess.Popen(line, env=env, stdout=out, stderr=out) as first:
        until(lambda: "Running" in states(jobs))
        first.send_signal(signal.SIGSTOP)
        with subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL) as second:
            until(lambda: states(jobs).count("Succeeded") >= 1, 120)
            first.send_signal(signal.SIGCONT)
            until(lambda: "s is driven by another process now" in log.read_text() or first.poll() is not None)
            assert first.poll() is None, log.read_text()
            second.kill()
        jobs.kubectl("annotate", "configmap", "s", "tfyard.dev/driven-until-")  # its silence is over
        assert first.wait(240) == 0
    assert "s: Succeeded: 4/4 done" in log.read_text()
    assert trials(jobs).keys() == TRIALS
    assert len(runs(jobs)) == 4


@pytest.mark.long
def test_ctrl_c_leaves_the_trials_of_a_sweep_alone_and_resume_goes_on_with_them(jobs: Jobs) -> None:
    write(jobs, seconds=4)
    command = jobs.start("submit", "sweep.yaml", "--follow")
    until(lambda: "s-001" in trials(jobs) and "Running" in states(jobs))
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 130
    assert "`tfyard resume s` goes on" in err
    assert "Ctrl-C again" not in err, "it does not stop the trials"
    assert state(jobs)["state"] == "Stopped"
    assert jobs.phase("s-001") != "Suspended"
    resumed = jobs.tfyard("resume", "s", "--yes")
    assert resumed.code == 0, resumed.err
    assert "best: s-00" in resumed.out
    assert trials(jobs).keys() == TRIALS
    assert len(runs(jobs)) == 4


SILENT = "print('nothing')"
BROKEN = "import sys\nsys.exit('no such file: data.csv')"


@pytest.mark.long
def test_a_sweep_that_cannot_succeed_ends_early_and_says_why(jobs: Jobs) -> None:
    write(jobs, train=SILENT, name="silent")
    done = jobs.tfyard("submit", "sweep.yaml", "--follow")
    assert (done.code, "printed no metric called 'auc'" in done.out) == (1, True), done.out
    write(jobs, train=BROKEN, name="broken", parallel=1)
    done = jobs.tfyard("submit", "sweep.yaml", "--follow")
    assert (done.code, "the first 3 trials have failed" in done.out) == (1, True), done.out
    assert "no such file: data.csv" in jobs.tfyard("why", "broken").out
    found = {each["metadata"]["name"] for each in jobs.get("tfjobs")["items"]}
    assert {name for name in found if name.startswith("broken")} == {"broken-001", "broken-002", "broken-003"}


UNLUCKY = """
batch, tried = os.environ["BATCH"], out / "tried"
if batch == "128" or batch == "64" and not tried.exists():
    tried.touch()
    sys.exit(f"no memory for {batch}")
for step"""


@pytest.mark.long
def test_a_trial_that_fails_is_tried_again_so_often_with_the_same_values_in_the_same_folder(
    jobs: Jobs,
) -> None:
    train = TRAIN.replace("for step", UNLUCKY.lstrip(), 1)
    write(jobs, train=train, over={"lr": [0.01], "batch": [32, 64, 128]}, retryTrials=1)
    done = jobs.tfyard("submit", "sweep.yaml", "--follow")
    assert done.code == 0, done.out
    told = sorted(state(jobs)["trials"], key=lambda trial: trial["number"])
    assert [(trial["job"], trial["attempt"], trial["state"]) for trial in told] == [
        ("s-001", 1, "Succeeded"),
        ("s-002-2", 2, "Succeeded"),
        ("s-003-2", 2, "Failed"),
    ]
    found = trials(jobs)
    assert found.keys() == {"s-001", "s-002", "s-002-2", "s-003", "s-003-2"}
    first, again = (
        found[name]["metadata"]["annotations"]["tfyard.dev/values"] for name in ("s-002", "s-002-2")
    )
    assert first == again
    logs = jobs.tfyard("logs", "s-002")
    assert (logs.out.count("step"), "s-002 means s-002-2" in logs.err) == (4, True)
    assert "no memory for 64" in jobs.tfyard("logs", "tfjob/s-002").out
    assert "no memory for 128" in jobs.tfyard("why", "s-003").out


@pytest.mark.long
def test_trials_that_are_worse_are_stopped_and_keep_their_logs(jobs: Jobs) -> None:
    write(
        jobs,
        train=TRAIN.replace("seconds / 4", "seconds if lr > 0.1 and step > 2 else 0.1"),
        seconds=600,
        over={"lr": [0.01, 0.011, 0.012, 0.013, 0.9]},
        prune="median",
    )
    done = jobs.tfyard("submit", "sweep.yaml", "--follow")
    assert done.code == 0, done.err
    assert "s-005  pruned: lr=0.9" in done.out
    assert "5/5 done, 1 pruned, best auc" in jobs.tfyard("get").out
    assert jobs.phase("s-005") == "Suspended"
    assert "step 3 auc" in jobs.tfyard("logs", "s-005").out
    assert jobs.get("pod", "s-005-worker-0")["status"]["phase"] == "Failed", "nothing of it runs"


@pytest.mark.long
def test_trials_do_not_outlive_the_deadline_of_their_sweep_also_if_nobody_drives_it(jobs: Jobs) -> None:
    write(jobs, seconds=900, deadline="40s")
    bind(jobs)
    submit(jobs)
    until(lambda: "Running" in states(jobs))
    left = trials(jobs)["s-001"]["spec"]["runPolicy"]["activeDeadlineSeconds"]
    assert 1 <= left <= 40
    jobs.kubectl("delete", "jobs", "-l", "tfyard.dev/sweep=s")
    until(lambda: all(each["status"].get("phase") == "Failed" for each in trials(jobs).values()), 120)
    until(lambda: not running_pods(jobs), 90)  # after their grace period


def running_pods(jobs: Jobs) -> list[str]:
    pods = jobs.get("pods", "-l", "training.kubeflow.org/job-name")["items"]
    return [each["metadata"]["name"] for each in pods if each["status"]["phase"] == "Running"]


@pytest.mark.long
def test_a_user_who_may_not_ask_is_told_by_the_driver_what_an_administrator_types(jobs: Jobs) -> None:
    write(jobs)
    jobs.kubectl("create", "rolebinding", "ann", "--clusterrole=edit", "--user=ann")
    done = jobs.tfyard("submit", "sweep.yaml", "--as", "ann")
    assert done.code == 0, done.err
    (line,) = [part for part in done.err.split("`") if part.startswith("kubectl create rolebinding")]
    assert "its driver" in jobs.tfyard("why", "s").out
    jobs.cluster.kubectl(*shlex.split(line)[1:])
    until_phase(jobs, "Succeeded")
    assert trials(jobs).keys() == TRIALS


@pytest.mark.long
def test_a_sweep_by_optuna_in_the_image_of_the_installation_uses_the_account_that_it_names(
    jobs: Jobs,
) -> None:
    write(
        jobs,
        over={"lr": {"from": 0.001, "to": 0.1, "log": True}},
        trials=3,
        serviceAccount="mine",
    )
    refused = jobs.tfyard("submit", "sweep.yaml")
    assert "there is no ServiceAccount mine" in refused.err
    jobs.kubectl("create", "serviceaccount", "mine")
    account = f"--serviceaccount={jobs.namespace}:mine"
    jobs.kubectl("create", "rolebinding", "mine", "--clusterrole=tfyard-sweep", account)
    submit(jobs)
    assert until_phase(jobs, "Succeeded")["sweep"]["sampler"] == "tpe"
    (pod,) = [each for each in jobs.get("pods")["items"] if "-driver-" in each["metadata"]["name"]]
    assert pod["spec"]["serviceAccountName"] == "mine"


@pytest.mark.long
@pytest.mark.tensorflow
def test_four_trials_of_the_cancer_example_find_values_that_are_good(jobs: Jobs) -> None:
    shutil.copytree(ROOT / "examples" / "cancer", jobs.folder, dirs_exist_ok=True)
    file = jobs.folder / "sweep.yaml"
    file.write_text(file.read_text().replace("trials: 24", "trials: 4\nparallel: 2"))
    done = jobs.tfyard("submit", "sweep.yaml", "--follow")
    assert done.code == 0, done.err
    best = json.loads(jobs.tfyard("best", "cancer-sweep", "-o", "json").out)
    assert best["value"] >= GOOD_AUC, done.out
    assert len({each["metadata"]["name"] for each in jobs.get("tfjobs")["items"]}) == 4
