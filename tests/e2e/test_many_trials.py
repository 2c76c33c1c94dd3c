"""Lists of sweeps of hundreds of trials read no file twice, and none of trials that they do not show."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Yard

pytestmark = [pytest.mark.processes]

TRIALS = 500
COUNTING = """
import collections, json, sys
from pathlib import PurePath
opened = collections.Counter()
sys.addaudithook(lambda event, args: opened.update([PurePath(str(args[0])).name] if event == "open" else []))
from tfyard.__main__ import main
try:
    main()
finally:
    print(json.dumps(opened), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of one real trial, which is copied."""
    yard = Yard(tmp_path_factory.mktemp("many"))
    yard.write("train.py", "import os\nprint('step 1 auc', os.environ['LR'])")
    options = ("--over", "lr=1", "--objective", "max auc", "--name", "s", "-q")
    assert yard.tfyard("sweep", "train.py", *options).returncode == 0
    home = yard.folder / ".tfyard"
    (file,), (run,) = home.glob("sweeps/*/sweep.json"), (home / "runs").iterdir()
    state = json.loads(file.read_text())
    for number in range(2, TRIALS + 1):
        copy = shutil.copytree(run, home / "runs" / f"s-{number:03d}-copy")
        record = json.loads((copy / "run.json").read_text())
        record |= {"name": copy.name, "trial": record["trial"] | {"number": number}}
        (copy / "run.json").write_text(json.dumps(record))
        trial = state["trials"][0] | {"number": number, "job": copy.name, "objective": number / TRIALS}
        state["trials"].append(trial)
    state["spec"]["trials"] = TRIALS
    file.write_text(json.dumps(state))
    return yard.folder


@pytest.mark.parametrize(
    ("command", "shows", "records"),
    [
        (("get", "--local"), "500/500 done, best auc 1", TRIALS),
        (("runs",), "500 trials", TRIALS),
        (("get", "--local", "s"), "500/500 done, best auc 1", 0),
        (("get", "--local", "--trials", "s"), "s-277   Succeeded", 0),
        (("describe", "--local", "s"), "s-277   Succeeded", 0),
        (("metrics", "--local", "s"), "trials 1 to 500", 0),
        (("best", "--local", "s"), "s-001-", 0),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_read_of_500_trials(folder: Path, command: tuple[str, ...], shows: str, records: int) -> None:
    words = [sys.executable, "-c", COUNTING, *command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    opened = json.loads(done.stderr.splitlines()[-1])
    assert shows in done.stdout
    assert opened.get("run.json", 0) == records
    assert opened["sweep.json"] <= 3
    assert not {"status.json", "metrics.jsonl", "record.json"} & opened.keys()
