"""The example of sweeps, trained for real."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Yard

pytestmark = [pytest.mark.processes, pytest.mark.tensorflow]
CANCER = Path(__file__).parents[2] / "examples" / "cancer"
DEFAULTS = {"lr": "0.05", "hidden": "16"}
"""Those of train.py."""


def example(yard: Yard, steps: int) -> None:
    shutil.copytree(CANCER, yard.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    text = (yard.folder / "trial.yaml").read_text()
    yard.write("trial.yaml", re.sub(r"--steps \d+", f"--steps {steps}", text))


def swept(yard: Yard, *options: str) -> dict[str, Any]:
    process = yard.start("sweep", "sweep.yaml", "-o", "json", *options)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    state: dict[str, Any] = json.loads(out.splitlines()[-1])
    return state


@pytest.mark.long
def test_six_short_trials_find_a_classifier_in_folders_of_their_own(yard: Yard) -> None:
    example(yard, 200)
    state = swept(yard, "--trials", "6", "--seed", "1", "--prune", "none")
    trials = state["trials"]
    assert [trial["state"] for trial in trials] == ["Succeeded"] * 6
    best = max(trials, key=lambda trial: float(trial["value"]))
    assert best["value"] >= 0.976
    assert len({(trial["values"]["lr"], trial["values"]["hidden"]) for trial in trials}) == 6
    assert all(isinstance(trial["values"]["hidden"], int) for trial in trials)
    kept = yard.folder / ".tfyard" / "volumes" / "cancer-sweep"
    models = sorted(path.parts[-3] for path in kept.glob("*/*/model/saved_model.pb"))
    assert models == [f"{number:03d}" for number in range(1, 7)]
    assert f"{best['value']:.4f}"[:5] in yard.tfyard("describe", "cancer-sweep").stdout


@pytest.mark.long
def test_twenty_four_trials_are_at_least_as_good_as_the_defaults(yard: Yard) -> None:
    example(yard, 3000)
    text = (yard.folder / "trial.yaml").read_text()
    for name, value in DEFAULTS.items():
        text = text.replace(f"{{{name}}}", value)
    (yard.folder / "defaults.yaml").write_text(text.replace("claim: cancer-sweep", "claim: defaults"))
    lines = yard.tfyard("run", "defaults.yaml").stdout
    (plain,) = re.findall(r"Held-out: .* auc: ([\d.]+)", lines)
    state = swept(yard)
    assert len(state["trials"]) == 24
    assert {trial["state"] for trial in state["trials"]} <= {"Succeeded", "Pruned"}
    found = [trial["value"] for trial in state["trials"] if trial["state"] == "Succeeded"]
    assert max(found) >= float(plain)
