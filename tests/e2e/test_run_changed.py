"""A run that is stopped, resumed, restarted and repeated from another terminal."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Yard, wait_until
from tfyard.backends.local import run_directory

pytestmark = pytest.mark.processes

COUNTS = """
import os, pathlib, signal, sys, time
out = pathlib.Path(os.environ["OUT"])
me = os.environ.get("TF_CONFIG", "") and __import__("json").loads(os.environ["TF_CONFIG"])["task"]["index"]
starts = out / f"starts-{me}"
starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
if me == 1 and os.environ.get("QUICK"):
    sys.exit(0)
def stop(*_):
    time.sleep(0.3)
    (out / f"saved-{me}").write_text("x")
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
(out / f"ready-{me}").write_text("x")
while not (out / "go").exists():
    time.sleep(0.02)
"""


@pytest.fixture
def counting(yard: Yard) -> Yard:
    yard.job(COUNTS, worker=2, success="all-workers")
    return yard


def start(yard: Yard, *args: str) -> Any:
    return yard.start(*(args or ("run", "job.yaml", "--env", f"OUT={yard.folder}")))


def until_ready(yard: Yard, *indexes: int) -> None:
    for index in indexes:
        wait_until((yard.folder / f"ready-{index}").exists, f"worker-{index} runs")
        (yard.folder / f"ready-{index}").unlink()


def records(yard: Yard) -> list[dict[str, Any]]:
    found = [json.loads(path.read_text()) for path in (yard.folder / ".tfyard" / "runs").glob("*/run.json")]
    return sorted(found, key=lambda record: str(record["started"]))


def starts(yard: Yard, index: int) -> int:
    return len((yard.folder / f"starts-{index}").read_text())


def test_a_run_is_stopped_with_its_grace_and_goes_on_without_what_had_finished(counting: Yard) -> None:
    yard = counting
    process = start(yard, "run", "job.yaml", "--env", f"OUT={yard.folder}", "--env", "QUICK=1")
    until_ready(yard, 0)
    assert any("worker-1 ── ended" in line for line in process.stdout)  # it reads up to that line
    stopped = yard.tfyard("stop", "t", "--local")
    assert (stopped.returncode, stopped.stdout.endswith(" stopped\n")) == (0, True), stopped.stderr
    assert "stays: its record" in stopped.stderr
    assert (process.wait(60), process.stderr.read()) == (130, "")
    (record,) = records(yard)
    assert (record["phase"], (yard.folder / "saved-0").exists()) == ("Stopped", True)
    assert "it was stopped by `tfyard stop`" in yard.tfyard("why", "t", "--local").stdout
    (yard.folder / "task.py").write_text(COUNTS)  # the code is where it was
    goes_on = start(yard, "resume", "t", "--local")
    until_ready(yard, 0)
    refused = yard.tfyard("resume", record["name"], "--local")
    assert (refused.returncode, "which is running" in refused.stderr) == (1, True)
    (yard.folder / "go").touch()
    out, _ = goes_on.communicate(timeout=60)
    assert (goes_on.returncode, f"resumes {record['name']}" in out) == (0, True), out
    assert (starts(yard, 0), starts(yard, 1)) == (2, 1), "worker-1 had finished"
    assert [each["phase"] for each in records(yard)] == ["Stopped", "Succeeded"]
    assert records(yard)[1]["resumes"] == record["name"]
    over = yard.tfyard("resume", "t", "--local")
    assert (over.returncode, over.stderr.count("\n"), "`tfyard rerun" in over.stderr) == (1, 1, True)


def test_a_task_is_restarted_without_using_a_retry(counting: Yard) -> None:
    yard = counting
    process = start(yard)
    until_ready(yard, 0, 1)
    wrong = yard.tfyard("restart", "t", "worker-7", "--local")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert wrong.stderr.startswith("tfyard: the job has no task or role 'worker-7'; did you mean worker")
    done = yard.tfyard("restart", "t", "worker-1", "--local")
    assert (done.returncode, done.stdout) == (0, "running again: worker-1\n"), done.stderr
    until_ready(yard, 1)
    assert (yard.folder / "saved-1").exists()
    (yard.folder / "go").touch()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert "restart: SIGTERM to worker-1, 30 s grace" in out
    assert (starts(yard, 0), starts(yard, 1)) == (1, 2)
    (run,) = (yard.folder / ".tfyard" / "runs").iterdir()
    assert "retries" not in (run / "status.json").read_text()
    assert not (run / "control").exists()


def test_a_killed_run_goes_on_and_a_reused_process_id_does_no_harm(counting: Yard) -> None:
    yard = counting
    process = start(yard)
    until_ready(yard, 0, 1)
    process.kill()
    process.wait()
    (run,) = (yard.folder / ".tfyard" / "runs").iterdir()
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "pid": os.getpid()}))  # used again, by us
    stopped = yard.tfyard("stop", "t", "--local")
    assert (stopped.returncode, "has ended (Killed)" in stopped.stderr) == (1, True)
    assert yard.tfyard("logs", "-f", "t", "--local").returncode == 1
    (yard.folder / "go").touch()
    assert yard.tfyard("resume", "t", "--local", "-q").returncode == 0
    assert starts(yard, 0) == 2


def test_a_job_runs_again_as_it_ran_whatever_became_of_its_file(counting: Yard) -> None:
    yard = counting
    (yard.folder / "go").touch()
    assert start(yard).wait(60) == 0
    (yard.folder / "job.yaml").write_text("name: other\n")
    done = yard.tfyard("rerun", "t", "--local", "-q", "--set", "worker=1")
    assert done.returncode == 0, done.stderr
    first, second = records(yard)
    assert ([len(each["tasks"]) for each in (first, second)], second["job"]) == ([2, 1], "t")
    refused = yard.tfyard("scale", "t", "worker=4", "--local")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    deleted = yard.tfyard("delete", first["name"], second["name"], "--local")
    assert deleted.stdout == f"{first['name']} deleted\n{second['name']} deleted\n"
    assert records(yard) == []


def test_a_script_with_options_runs_again(yard: Yard) -> None:
    yard.write("train.py", "import os, sys; print('got', os.environ['RATE'], sys.argv[1:])")
    assert yard.tfyard("run", "train.py", "--env", "RATE=0.1", "-q", "--", "--steps", "3").returncode == 0
    assert "got 0.1 ['--steps', '3']" in yard.tfyard("rerun", "train", "--local").stdout
    assert "got 0.2 ['--steps', '3']" in yard.tfyard("rerun", "train", "--local", "--env", "RATE=0.2").stdout


def test_old_runs_go_when_there_are_too_many_and_it_is_said(yard: Yard) -> None:
    yard.write("train.py", "pass")
    for number in range(4):
        folder = yard.folder / ".tfyard" / "runs" / f"old-{number}"
        (folder / "logs").mkdir(parents=True)
        at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=number)
        record = {"name": folder.name, "job": "old", "started": at.isoformat(), "ended": at.isoformat()}
        (folder / "run.json").write_text(json.dumps(record))
    done = yard.tfyard("run", "train.py", TFYARD_KEEP_RUNS="2")
    assert "removed 2 old runs (TFYARD_KEEP_RUNS says how many are kept)" in done.stdout
    kept = sorted(path.name for path in (yard.folder / ".tfyard" / "runs").iterdir())
    assert kept[:2] == ["old-2", "old-3"]
    assert len(kept) == 3
    wrong = yard.tfyard("run", "train.py", TFYARD_KEEP_RUNS="few")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert wrong.stderr.startswith("tfyard: TFYARD_KEEP_RUNS=few: must be")


def test_a_run_that_goes_on_never_counts(tmp_path: Path) -> None:
    from tfyard.model import Job
    from tfyard.model.run_record import RunRecord

    now = datetime(2024, 1, 1, tzinfo=UTC)
    run = run_directory.RunDirectory.make(tmp_path, Job(name="t"), now, lambda _: None)
    run.record(RunRecord(name=run.name, job="t", started=now, pid=os.getpid()))
    assert run_directory.prune(0, tmp_path) == []
    run.close()
    assert run_directory.prune(0, tmp_path) == [run.name], "killed: it no longer holds its lock"


@pytest.mark.long
def test_ctrl_c_can_be_resumed_too(counting: Yard) -> None:
    yard = counting
    process = start(yard)
    until_ready(yard, 0, 1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert records(yard)[0]["phase"] == "Interrupted"
    (yard.folder / "go").touch()
    assert yard.tfyard("resume", "t", "--local", "-q").returncode == 0
