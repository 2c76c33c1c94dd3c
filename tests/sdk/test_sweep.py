"""Sweeps from Python: real trials, which go with the program that started them, and stay to be resumed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tfyard
from tests.sdk.test_comparing import pandas
from tfyard import aio
from tfyard.local.sweeps import SweepFolder
from tfyard.model.sweep import Choice, Objective, SweepSpec, SweepState, Trial
from tfyard.sdk import card
from tfyard.sdk.sweep_on_machine import SweepOnMachine

__all__ = ["pandas"]
TRAIN = """
import os, time
rate = float(os.environ["LR"])
if "TFYARD_OUT" in os.environ: open(os.environ["TFYARD_OUT"] + "/rate", "w").write(str(rate))
print(f"step 1 auc {1 - abs(rate - 0.5)}", flush=True)
while os.path.exists("hold"): time.sleep(.05)
"""
EVIL = "<script>alert('&')</script>"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def eventually(holds: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.processes
def test_a_sweep_runs_beside_the_program_and_tells_its_best_trial(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tfyard")
    sweep = tfyard.sweep("train.py", over={"lr": [0.1, 0.4]}, objective="max auc", parallel=2)
    assert "lr is the variable LR of each trial: the job does not name {lr}" in caplog.text
    assert sweep.wait("2m") is sweep
    assert (sweep.status, sweep.exit_code) == ("Succeeded", 0)
    best = sweep.best
    assert best is not None
    assert (best.number, best.values, best.objective, best.state) == (2, {"lr": 0.4}, 0.9, "Succeeded")
    assert [trial.values["lr"] for trial in sweep.trials] == [0.1, 0.4]
    assert [line.text for line in best.logs()] == ["step 1 auc 0.9"]
    assert best.get("/out/rate").read_text() == "0.4"
    assert sorted((row["task"], row["auc"]) for row in sweep.metrics()) == [
        ("trial-1", 0.6),
        ("trial-2", 0.9),
    ]
    assert "best auc 0.9" in sweep.describe()
    why = sweep.why()
    assert (why.code, str(why)) == (0, f"{sweep.name} has succeeded: 2/2 done, best auc 0.9")

    found = tfyard.find("train-sweep")
    assert isinstance(found, tfyard.Sweep)
    assert found.directory == sweep.directory
    assert [type(each) for each in tfyard.runs()] == [tfyard.Sweep], "its trials are no rows of their own"
    shown = sweep._repr_html_()
    assert "2/2 done" in shown
    assert "train-sweep-002" in shown
    with pytest.raises(tfyard.NotPossible, match="name one of them"):
        sweep.restart()

    async def asked() -> tuple[str, object, int]:
        twin = await aio.find("train-sweep")
        assert isinstance(twin, aio.Sweep)
        first = await twin.best
        assert first is not None
        assert "best auc 0.9" in await twin.describe()
        return await twin.status, first.values, len(await twin.trials)

    assert asyncio.run(asked()) == ("Succeeded", {"lr": 0.4}, 2)
    sweep.delete()
    assert tfyard.runs() == []


@pytest.mark.long
def test_a_frame_of_pandas_has_a_row_for_each_trial_whatever_its_parameters_are_called(
    pandas: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(pandas)])
    spec = SweepSpec(
        name="s",
        over={"lr": Choice((0.1, 0.2)), "state": Choice(("raw",))},
        objective=Objective("auc", is_max=True),
        trials=2,
    )
    first = Trial(
        number=1, values={"lr": 0.1, "state": "raw"}, state="Succeeded", objective=0.5, at=3, job="s-001"
    )
    second = Trial(number=2, values={"lr": 0.2, "state": "raw"})
    kept = SweepFolder(folder / "s")
    kept.path.mkdir()
    kept.save(SweepState(spec=spec, created=datetime.now(UTC), trials=(first, second)))
    frame = tfyard.Sweep(SweepOnMachine(kept)).frame()
    columns = ["name", "state", "lr", "values.state", "auc", "step", "started", "ended", "message"]
    assert [*frame.columns] == columns
    assert [*frame.loc[1]][:6] == ["s-001", "Succeeded", 0.1, "raw", 0.5, 3]
    assert [*frame["state"]] == ["Succeeded", "Stopped"]


@pytest.mark.processes
def test_a_sweep_file_is_run_with_changes_and_a_stopped_sweep_goes_on(folder: Path) -> None:
    (folder / "sweeps").mkdir()
    (folder / "sweeps" / "job.yaml").write_text(
        f"name: a\nrun: [python, {folder / 'train.py'}]\nworkdir: {folder}\nenv: {{LR: '{{rate}}'}}\nworker: 1\n"
    )
    (folder / "sweeps" / "sweep.yaml").write_text(
        "name: two\njob: job.yaml\nover: {rate: [0.1, 0.2, 0.3, 0.6]}\nobjective: max auc\n"
    )
    (folder / "hold").touch()
    sweep = tfyard.sweep("sweeps/sweep.yaml", trials=2, parallel=1)
    eventually(lambda: any(sweep.trials))
    assert (sweep.status, sweep.best) == ("Running", None)
    sweep.stop()
    assert sweep.status == "Stopped"
    (folder / "hold").unlink()
    assert sweep.resume().wait("2m").status == "Succeeded"
    assert [(trial.values["rate"], trial.state) for trial in sweep.trials] == [
        (0.1, "Succeeded"),
        (0.2, "Succeeded"),
    ]


@pytest.mark.processes
def test_trials_end_with_the_program_and_the_sweep_can_be_resumed(folder: Path) -> None:
    (folder / "hold").touch()
    program = """
import tfyard
job = tfyard.Job(run=["python", "train.py"], env={"LR": "{lr}"}, name="made")
sweep = tfyard.sweep(job, over={"lr": [0.3, 0.4]}, objective="max auc", parallel=2)
while len(sweep.trials) < 2: pass
print("ready", flush=True)
import time; time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
        finally:
            os.kill(process.pid, signal.SIGKILL)
    sweep = tfyard.find("made-sweep")
    assert isinstance(sweep, tfyard.Sweep)
    eventually(lambda: sweep.status == "Stopped")
    eventually(lambda: {trial.status for trial in sweep.trials} <= {"Stopped", "Interrupted"})
    directory = sweep.directory
    assert directory is not None
    eventually(lambda: not SweepFolder(directory).is_driven)
    (folder / "hold").unlink()
    assert sweep.resume().wait("2m").best is not None


def test_mistakes_are_told_before_anything_starts(folder: Path) -> None:
    with pytest.raises(tfyard.Invalid) as error:
        tfyard.sweep("train.py", over={"lr": tfyard.between(1, 0)}, objective="auc", trial=3)  # type: ignore[call-arg]
    assert [".".join(map(str, each.path)) for each in error.value.problems] == [
        "trial",
        "over.lr",
        "objective",
    ]
    (folder / "job.yaml").write_text("name: a\nimage: b\nrun: python train.py --lr {l_r}\nworker: 1\n")
    with pytest.raises(tfyard.Usage, match=r"did you mean \{lr\}\?"):
        tfyard.sweep("job.yaml", over={"lr": [1]}, objective="max auc")
    (folder / "sweep.yaml").write_text("job: job.yaml\nover: {lr: []}\nobjective: max auc\n")
    with pytest.raises(tfyard.Invalid, match=r"sweep.yaml:2:12: over.lr: must have a value"):
        tfyard.sweep("sweep.yaml")
    with pytest.raises(tfyard.Usage, match=r"sweep.yaml is a sweep file: give the file of its job, job.yaml"):
        tfyard.Job("sweep.yaml")
    assert not (folder / ".tfyard").exists()


def stored(folder: Path, *trials: Trial) -> SweepOnMachine:
    spec = SweepSpec(
        name="s",
        over={"x": Choice((EVIL, "b"))},
        objective=Objective(EVIL, is_max=True),
        trials=40,
        sampler="grid",
    )
    (folder / "s").mkdir()
    now = datetime.now(UTC)
    kept = SweepFolder(folder / "s")
    kept.save(SweepState(spec=spec, created=now, ended=now, phase="Failed", message=EVIL, trials=trials))
    return SweepOnMachine(kept)


def test_nothing_that_programs_print_is_markup_in_the_card(folder: Path) -> None:
    trials = (
        Trial(number=number, values={"x": EVIL}, state="Succeeded", objective=float(number), message=EVIL)
        for number in range(1, 13)
    )
    shown = card.html(stored(folder, *trials))
    assert "<script" not in shown
    assert "and 2 more" in shown
    assert "<polyline" in shown


def test_a_card_without_trials_says_so_by_its_progress(folder: Path) -> None:
    assert "0/40 done" in card.html(stored(folder))
