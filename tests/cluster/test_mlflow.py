"""Jobs that are reported to MLflow while they are followed: interrupted, killed, followed again, and in no more
than one run."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster.clusters import until
from tests.cluster.jobs import Jobs
from tests.tracking.server import SmallMLflow, serving

pytestmark = [pytest.mark.cluster, pytest.mark.long]
URI = "http://mlflow.example:5000"
JOB = """
name: first
image: example/train:1
code: src
run: python train.py --lr 0.1
worker: {count: 2, restart: RESTART}
success: all-workers
volumes: {out: {claim: out, at: /out, size: 1Gi}}
mlflow: URI
"""
TRAINS = """
import json, os, pathlib, sys, time
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
print("told", os.environ.get("MLFLOW_RUN_ID"), os.environ.get("MLFLOW_TRACKING_URI"), flush=True)
print("step 10 loss 0.5", flush=True)
if index == 0 and not pathlib.Path("/out/again").exists():
    pathlib.Path("/out/again").touch()
    sys.exit(1)
while not pathlib.Path("/out/go").exists():
    time.sleep(0.1)
print("step 20 loss 0.25", flush=True)
"""


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallMLflow]:
    """It is reached by a proxy, which it is itself: an address of this machine would not be told to pods."""
    with serving() as small:
        monkeypatch.setenv("http_proxy", small.uri)
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0psecret")
        yield small


def write(jobs: Jobs, uri: str = URI, restart: str = "on-failure") -> None:
    (jobs.folder / "src").mkdir(exist_ok=True)
    (jobs.folder / "src" / "train.py").write_text(TRAINS)
    (jobs.folder / "job.yaml").write_text(JOB.replace("URI", uri).replace("RESTART", restart))


def follow(jobs: Jobs, mlflow: SmallMLflow, *words: str) -> "subprocess.Popen[str]":
    """A command that follows the job, once it reports."""
    begun = len(mlflow.calls("runs/log-batch"))
    process = jobs.start(*words)
    until(lambda: len(mlflow.calls("runs/log-batch")) > begun or process.poll() is not None, 120)
    assert process.poll() is None, process.communicate()
    return process


def test_a_job_that_is_followed_again_goes_on_in_its_run_and_so_does_its_deciding_task(
    jobs: Jobs, mlflow: SmallMLflow
) -> None:
    write(jobs)
    with follow(jobs, mlflow, "submit", "job.yaml", "--follow") as first:
        until(lambda: "loss" in mlflow.metrics())
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=60)
    assert (first.returncode, mlflow.run["status"]) == (130, "RUNNING")
    assert f"tfyard logs -f first -n {jobs.namespace} --mlflow {URI}" in said
    with follow(jobs, mlflow, "submit", "job.yaml", "--follow") as second:
        os.kill(second.pid, signal.SIGKILL)
        second.communicate()
    assert mlflow.run["status"] == "RUNNING"
    assert jobs.tfyard("submit", "job.yaml").code == 0, "its run stays in its annotations"
    assert jobs.tfyard("diff", "job.yaml").code == 0
    (jobs.claim("out") / "go").touch()
    last = jobs.tfyard("logs", "-f", "first", "--mlflow", URI)
    assert last.code == 0, last.err
    assert (list(mlflow.runs), mlflow.run["status"], mlflow.experiments) == (
        ["run1"],
        "FINISHED",
        {"first": "1"},
    )
    assert mlflow.run["params"] == {"lr": "0.1"}
    assert mlflow.run["tags"]["tfyard.namespace"] == jobs.namespace
    assert {step for step, _ in mlflow.metrics()["loss"]} == {10, 20}
    logs = jobs.tfyard("logs", "first", "--all-attempts").out.splitlines()
    told = sorted(line.split(" ", 1)[0] + line.partition("told")[2] for line in logs if "told" in line)
    restarted = [line for line in told if not line.startswith("worker-1")]
    assert {line.partition(" ")[2] for line in restarted} == {f"run1 {URI}"}
    assert "worker-1 None None" in told
    kept = jobs.kubectl("get", "tfjobs,pods,configmaps,events", "-o", "yaml")
    assert ("t0psecret" in kept, "tfyard.dev/mlflow-run: run1" in kept) == (False, True)


def test_a_job_that_fails_or_is_deleted_ends_so_and_trouble_is_told_once(
    jobs: Jobs, mlflow: SmallMLflow
) -> None:
    write(jobs, mlflow.uri, restart="never")
    failed = jobs.tfyard(
        "submit", "job.yaml", "--name", "fails", "--set", "worker=1", "--env", "TF_CONFIG={", "--follow"
    )
    assert (failed.code, mlflow.run["status"]) == (1, "FAILED"), failed.err
    assert "the tasks are not told of their run" in failed.err
    (jobs.claim("out") / "again").touch()
    with follow(jobs, mlflow, "submit", "job.yaml", "--name", "goes", "--follow") as goes:
        assert jobs.tfyard("delete", "goes", "--yes").code == 0
        goes.communicate(timeout=120)
    assert [run["status"] for run in mlflow.runs.values()] == ["FAILED", "KILLED"]
    mlflow.status = 401
    refused = jobs.tfyard("submit", "job.yaml", "--name", "other", "--env", "TF_CONFIG={", "--follow")
    assert (refused.code, refused.err.count("MLflow at ")) == (1, 1), refused.err
    assert "it refuses these credentials (401)" in refused.err
    assert jobs.tfyard("submit", "job.yaml", "--name", "b", "--mlflow", URI).code == 2
