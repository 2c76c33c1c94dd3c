"""Runs that are reported to MLflow: what the server gets, and that no trouble with it is one of the training."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Outcome, Yard, wait_until
from tests.ports import reserved_port
from tests.tracking.server import SmallMLflow, serving
from tfyard.controlplane.certificates import CertificateAuthority

pytestmark = pytest.mark.processes

TRAINS = """
import json, os, pathlib, sys
told = os.environ.get("MLFLOW_RUN_ID"), os.environ.get("MLFLOW_TRACKING_URI")
print("told", *told, flush=True)
print("step 10 loss 0.5", flush=True)
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0 and not pathlib.Path("again").exists():
    pathlib.Path("again").touch()
    sys.exit(1)
print("step 20 loss nan", flush=True)
"""
WAITS = """
import os, pathlib, time
print("told", os.environ.get("MLFLOW_RUN_ID"), flush=True)
print("step 10 loss 0.5", flush=True)
while not pathlib.Path("go").exists(): time.sleep(0.05)
"""
ENDS_WITHOUT_RUN = """
import os, pathlib, sys, time
run = os.environ.get("MLFLOW_RUN_ID")
print("told", run, flush=True)
while not run and not pathlib.Path("known").exists(): time.sleep(0.05)
sys.exit(0 if run else 143)
"""
TOKEN = {"MLFLOW_TRACKING_TOKEN": "t0psecret"}


@pytest.fixture
def mlflow() -> Iterator[SmallMLflow]:
    with serving() as small:
        yield small


def notes(outcome: Outcome) -> list[dict[str, Any]]:
    return [each for each in outcome.of("note") if "MLflow" in each["text"]]


def committed(folder: Path) -> str:
    """The commit of all that is in the folder, which becomes a git tree."""
    who = ("-c", "user.name=me", "-c", "user.email=me@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True).strip()


def kept(yard: Yard, text: str) -> list[Path]:
    files = (path for path in yard.folder.rglob("*") if path.is_file())
    return [path for path in files if text.encode() in path.read_bytes()]


def test_a_run_is_reported_and_its_deciding_task_goes_on_in_it_after_a_restart(
    yard: Yard, mlflow: SmallMLflow
) -> None:
    words = {"worker": {"count": 2, "restart": "on-failure"}, "mlflow": mlflow.uri}
    yard.job(TRAINS, **words, env={"LR": "0.1"}, success="all-workers")
    commit = committed(yard.folder)
    outcome = yard.run(**TOKEN)
    assert outcome.code == 0
    told = [line for task in ("worker-0", "worker-1") for line in outcome.lines(task) if "told" in line]
    assert told == [f"told run1 {mlflow.uri}"] * 2 + ["told None None"]
    assert (mlflow.run["status"], mlflow.run["name"]) == ("FINISHED", outcome.directory.name)
    assert mlflow.experiments == {"t": "1"}
    assert mlflow.run["params"] == {"LR": "0.1"}
    tags = {"mlflow.source.name": "job.yaml", "tfyard.job": "t", "tfyard.phase": "Succeeded"}
    tags |= {"mlflow.source.git.commit": commit, "mlflow.source.git.branch": "main"}
    assert tags.items() <= mlflow.run["tags"].items()
    assert mlflow.metrics() == {
        "loss": [(10, 0.5), (10, 0.5), (20, "NaN")],
        "worker-1/loss": [(10, 0.5), (20, "NaN")],
    }
    assert {each.headers["Authorization"] for each in mlflow.asked} == {"Bearer t0psecret"}
    assert kept(yard, "t0psecret") == []
    assert [each["text"] for each in notes(outcome)] == [f"MLflow: {mlflow.uri}/#/experiments/1/runs/run1"]


def test_credentials_of_the_address_reach_the_server_over_tls_and_no_file(
    yard: Yard, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, authority = tmp_path_factory.mktemp("tls"), CertificateAuthority()
    (folder / "ca.pem").write_bytes(authority.pem)
    pair = authority.server("mlflow", ["127.0.0.1"])
    (folder / "server.pem").write_bytes(pair.certificate + pair.key)
    yard.job("import sys; sys.exit(3)")
    with serving(pem=folder / "server.pem") as mlflow:
        authorities = {"MLFLOW_TRACKING_SERVER_CERT_PATH": str(folder / "ca.pem")}
        outcome = yard.run("--mlflow", mlflow.uri.replace("//", "//me:hunter2@"), **authorities)
    assert outcome.code == 3
    assert (mlflow.run["status"], mlflow.run["tags"]["tfyard.exit_code"]) == ("FAILED", "3")
    assert all(each.headers["Authorization"].startswith("Basic ") for each in mlflow.asked)
    assert (kept(yard, "hunter2"), "hunter2" in str(outcome.events)) == ([], False)


def test_credentials_in_a_job_file_are_refused_and_not_shown(yard: Yard) -> None:
    yard.job("pass", mlflow="https://me:hunter2@mlflow.example")
    done = yard.tfyard("run", "job.yaml")
    assert (done.returncode, "mlflow: must have no credentials" in done.stderr) == (1, True)
    assert "hunter2" not in done.stdout + done.stderr
    checked = yard.tfyard("validate", "job.yaml", "-o", "json")
    assert "hunter2" not in checked.stdout + checked.stderr


def test_a_run_that_is_killed_is_killed_there_and_resumed_there(yard: Yard, mlflow: SmallMLflow) -> None:
    yard.job(WAITS, mlflow=mlflow.uri)
    process = yard.start("run", "job.yaml")
    wait_until(lambda: "loss" in mlflow.metrics(), "it is reported")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: mlflow.run["status"] == "KILLED", "nobody has to start tfyard again for that")
    (directory,) = (yard.folder / ".tfyard" / "runs").iterdir()
    (yard.folder / "go").touch()
    resumed = yard.tfyard("resume", directory.name)
    assert (resumed.returncode, "told run1" in resumed.stdout) == (0, True), resumed.stderr
    assert mlflow.run["status"] == "FINISHED"


@pytest.mark.long
def test_a_run_that_is_known_late_is_told_to_the_next_pod_of_the_task(
    yard: Yard, mlflow: SmallMLflow
) -> None:
    mlflow.delay = 1.5
    yard.job(ENDS_WITHOUT_RUN, mlflow=mlflow.uri, worker={"count": 1, "restart": "exit-code"})

    def seen(event: dict[str, Any]) -> None:
        if event["event"] == "note" and event["text"].startswith("MLflow: "):
            mlflow.delay = 0
            (yard.folder / "known").touch()

    outcome = yard.watch(seen)
    assert (outcome.code, outcome.lines("worker-0")) == (0, ["told None", "told run1"])


def test_a_run_that_is_interrupted_is_killed_there(yard: Yard, mlflow: SmallMLflow) -> None:
    yard.job(WAITS, mlflow=mlflow.uri)
    process = yard.start("run", "job.yaml")
    wait_until(lambda: "loss" in mlflow.metrics(), "it is reported")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert (mlflow.run["status"], mlflow.run["tags"]["tfyard.phase"]) == ("KILLED", "Interrupted")


def reporter_of(process: subprocess.Popen[str]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (found,) = [int(pid) for pid in children if b"tracking" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found


@pytest.mark.long
def test_what_no_process_could_report_any_more_is_reported_by_the_next_run_of_the_folder(
    yard: Yard, mlflow: SmallMLflow
) -> None:
    yard.job(WAITS, mlflow=mlflow.uri)
    process = yard.start("run", "job.yaml")
    wait_until(lambda: "loss" in mlflow.metrics(), "it is reported")
    os.kill(reporter_of(process), signal.SIGKILL)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert mlflow.run["status"] == "RUNNING"
    next_one = yard.start("run", "job.yaml")
    wait_until(lambda: mlflow.runs["run1"]["status"] == "KILLED", "the next run tells it")
    (yard.folder / "go").touch()
    assert next_one.wait(60) == 0
    assert mlflow.runs["run2"]["status"] == "FINISHED"


def test_a_server_that_is_gone_costs_one_line_and_gets_the_run_when_it_is_back(yard: Yard) -> None:
    (yard.folder / "go").touch()
    with reserved_port() as port:
        yard.job(WAITS, mlflow=f"http://127.0.0.1:{port}")
        outcome = yard.run()
        assert (outcome.code, outcome.lines("worker-0")[0]) == (0, "told None")
        (note,) = notes(outcome)
        assert (note["level"], "Connection refused" in note["text"]) == ("warning", True)
        first = outcome.directory.name
        (yard.folder / "go").unlink()
        with serving(port) as mlflow:
            process = yard.start("run", "job.yaml")
            wait_until(lambda: len(ended(mlflow)) == 1, "the run of before is there")
            assert ended(mlflow)[0]["name"] == first
            (yard.folder / "go").touch()
            assert process.wait(60) == 0
            assert len(ended(mlflow)) == 2


def ended(mlflow: SmallMLflow) -> list[dict[str, Any]]:
    return [run for run in mlflow.runs.values() if run["status"] == "FINISHED"]


@pytest.mark.parametrize(
    "trouble", [{"status": 403}, {"status": 302, "location": "/login"}, {"delay": 600.0}]
)
def test_a_server_that_refuses_redirects_or_never_answers_costs_one_line(
    trouble: dict[str, Any], yard: Yard, mlflow: SmallMLflow
) -> None:
    for name, value in trouble.items():
        setattr(mlflow, name, value)
    yard.job("print('step 1 loss 0.5')", mlflow=mlflow.uri)
    outcome = yard.run()
    assert (outcome.code, [each["level"] for each in notes(outcome)]) == (0, ["warning"])
    assert len(mlflow.asked) == 1
