"""The examples, trained for real. Four runs of TensorFlow, because each costs half a minute."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import Yard
from tfyard.local.tasks import is_below
from tfyard.node.orphans import owner

pytestmark = [pytest.mark.processes, pytest.mark.tensorflow]

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(yard: Yard, name: str, file: str, steps: int) -> None:
    """A copy of the example, with its own number of steps."""
    shutil.copytree(
        EXAMPLES / name, yard.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    text = (yard.folder / file).read_text()
    (yard.folder / "job.yaml").write_text(re.sub(r"--steps \d+", f"--steps {steps}", text))


def pid_of(yard: Yard, task: str) -> int:
    """The last process that was started in the task: the program itself, not its shell."""
    run, pids = yard.started[-1].pid, [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    pods = {pid: (owner(pid) or "").partition("/")[0] for pid in pids}
    return max(pid for pid, pod in pods.items() if pod.endswith(f"-{task}") and is_below(pid, run))


def test_the_cancer_classifier_trains_on_although_a_worker_is_killed(yard: Yard) -> None:
    example(yard, "cancer", "job.yaml", 3000)
    process = yard.start("run", "job.yaml", "-o", "json")
    assert process.stdout is not None
    events = []
    for line in process.stdout:
        events.append(json.loads(line))
        if events[-1]["event"] == "metric" and events[-1]["step"] == 300:
            os.kill(pid_of(yard, "worker-1"), signal.SIGKILL)
    process.communicate()
    assert process.returncode == 0
    ends = [event["code"] for event in events if event["event"] == "ended" and event["task"] == "worker-1"]
    assert ends[0] == 137
    last = [event for event in events if event["event"] == "metric"][-1]["values"]
    assert last["auc"] >= 0.976
    assert last["accuracy"] >= 0.95
    out = yard.folder / ".tfyard/volumes/cancer"
    assert (out / "model" / "saved_model.pb").exists()
    assert list((out / "logs").glob("events.*"))
    assert "Resumed from the checkpoint of step 3000" in yard.tfyard("run", "job.yaml").stdout


def test_two_workers_train_in_step_by_multi_worker_mirrored_strategy(yard: Yard) -> None:
    example(yard, "mnist", "multiworker.yaml", 100)
    outcome = yard.run()
    assert outcome.code == 0
    assert outcome.status["tasks"]["Worker"]["finished"] == "0-1"
    assert outcome.of("metric")


def test_the_single_job_of_the_lab_leaves_its_model_and_summaries_in_the_volume(yard: Yard) -> None:
    example(yard, "mnist", "single.yaml", 100)
    outcome = yard.run()
    assert outcome.code == 0
    lines = outcome.lines("worker-0")
    assert any(re.search(r"^INFO:tensorflow:.*: Step \d+: Cross entropy = [\d.]+$", line) for line in lines)
    assert re.match(r"INFO:tensorflow:Final test accuracy = [\d.]+% \(N=\d+\)", lines[-1])
    kept = {path.name for path in (yard.folder / ".tfyard/volumes/mnist-single").rglob("*")}
    assert "saved_model.pb" in kept
    assert any(name.startswith("events.out.tfevents") for name in kept)


@pytest.mark.long
def test_a_script_in_the_classic_contract_ends_although_its_two_ps_never_do(yard: Yard) -> None:
    example(yard, "classic", "job.yaml", 200)
    outcome = yard.run()
    assert outcome.code == 0
    codes = {event["task"]: event["code"] for event in outcome.of("ended")}
    assert codes["worker-0"] == codes["worker-1"] == 0
    assert codes["ps-0"] == codes["ps-1"] == 143


@pytest.mark.long
def test_an_evaluator_judges_the_last_checkpoint_after_the_chief_is_done(yard: Yard) -> None:
    example(yard, "mnist", "evaluator.yaml", 200)
    outcome = yard.run()
    assert outcome.code == 0
    assert [event["code"] for event in outcome.of("ended", "evaluator-0")] == [0]
    assert outcome.of("metric", "evaluator-0")[-1]["step"] == 200
