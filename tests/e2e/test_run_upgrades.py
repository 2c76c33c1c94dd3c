"""Runs that one release of tfyard made, and commands of another one: upgraded, and back again."""

import json
import sys
from typing import Any

import pytest

from tests.e2e.conftest import Yard, read_until
from tests.last_release import known_to

pytestmark = pytest.mark.processes

TRAINS = """\
import json, os, sys
from pathlib import Path
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
for step in (1, 2, 3): print(f"Step: {step}, loss: {1 / step}", flush=True)
if index == 1 and not Path("failed").exists():
    Path("failed").touch()
    sys.exit(3)
"""
UNTIL_STOPPED = """\
import time
from pathlib import Path
if not Path("again").exists():
    Path("again").touch()
    print("begun", flush=True)
    time.sleep(600)
"""
Releases = tuple[str, str]
"""The interpreters of the release that runs the job, and of the one that is asked."""


@pytest.fixture(params=["upgraded", "downgraded"])
def releases(request: pytest.FixtureRequest, last_release: str) -> Releases:
    both = (last_release, sys.executable)
    return both if request.param == "upgraded" else (both[1], both[0])


def answers(yard: Yard, python: str, *lines: str) -> dict[str, Any]:
    """Command line -> what it answers as JSON."""
    yard.python, found = python, {}
    for line in lines:
        done = yard.tfyard(*line.split())
        assert (done.returncode, done.stderr) == (0, ""), (line, done)
        found[line] = json.loads(done.stdout)
    return found


def without_messages(value: Any) -> Any:
    """Releases word messages differently."""
    if isinstance(value, dict):
        return {key: without_messages(each) for key, each in value.items() if key != "message"}
    return [without_messages(each) for each in value] if isinstance(value, list) else value


def test_another_release_reads_all_of_a_run(yard: Yard, releases: Releases, last_release: str) -> None:
    runs, asks = releases
    yard.python = runs
    yard.job(TRAINS, worker=2, restart="on-failure", retries=2, success="all-workers")
    assert yard.tfyard("run", "job.yaml", "-q").returncode == 0
    (directory,) = (yard.folder / ".tfyard" / "runs").iterdir()
    name = directory.name
    lines = (f"runs show {name} -o json", f"get run/{name} -o json", f"metrics {name} --local -o json")
    said = {python: answers(yard, python, *lines) for python in releases}
    for line in lines:
        old, new = (without_messages(said[python][line]) for python in (last_release, sys.executable))
        assert known_to(old, new) == old, line
    show, get, metrics = said[asks].values()
    assert [(task["outcome"], task["starts"]) for task in show["tasks"]] == [
        ("Succeeded", 1),
        ("Succeeded", 2),
    ]
    assert [ending["exitCode"] for ending in get["status"]["endings"]] == [3]
    assert [row["step"] for row in metrics if row["task"] == "worker-0"] == [1, 2, 3]
    for python in releases:
        yard.python = python
        assert yard.tfyard("logs", name, "worker-0").stdout.count("Step: ") == 3
        assert "Succeeded" in yard.tfyard("describe", name, "--local").stdout
    yard.python = asks
    again = yard.tfyard("rerun", name, "--local")
    assert again.returncode == 0, again.stderr
    assert yard.tfyard("runs", "rm", name).returncode == 0
    assert not directory.exists()


@pytest.mark.long
def test_another_release_stops_a_run_and_resumes_it(yard: Yard, releases: Releases) -> None:
    runs, asks = releases
    yard.python = runs
    yard.job(UNTIL_STOPPED)
    run = yard.start("run", "job.yaml")
    read_until(run, "begun")
    (directory,) = (yard.folder / ".tfyard" / "runs").iterdir()
    yard.python = asks
    assert "Running" in yard.tfyard("get", "--local").stdout
    stopped = yard.tfyard("stop", directory.name, "--local", "--yes")
    assert stopped.returncode == 0, stopped.stderr
    run.communicate(timeout=30)
    resumed = yard.tfyard("resume", directory.name, "--local")
    assert resumed.returncode == 0, resumed.stderr
    for python in releases:
        listed = answers(yard, python, "get --local -o json")["get --local -o json"]["items"]
        assert sorted(run_phase(each) for each in listed) == ["Stopped", "Succeeded"]


def run_phase(run: dict[str, Any]) -> str:
    return str(run["status"]["phase"])
