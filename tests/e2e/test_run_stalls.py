"""Runs whose programs hang: they say so, start again if that is wanted, and show what they are doing."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import TIMEOUT, Yard, wait_until
from tfyard.backends.local.run_directory import RunDirectory

pytestmark = pytest.mark.processes

HANGS = """
import json, os, pathlib, time
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
out = pathlib.Path(os.environ["OUT"])
starts = out / f"starts-{index}"
starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
def waits_for_a_peer():
    while not (out / "go").exists():
        time.sleep(0.05)
print("step 1", flush=True)
waits_for_a_peer()
for step in range(2, 40):
    print("step", step, flush=True)
    time.sleep(0.1)
"""


def status(yard: Yard) -> Any:
    (run,) = yard.folder.glob(".tfyard/runs/*")
    return RunDirectory(run).status()


def stalls(yard: Yard) -> bool:
    return bool(status(yard).has("Stalled"))


def test_a_run_that_hangs_says_so_shows_what_it_does_and_goes_on(yard: Yard) -> None:
    yard.job(HANGS, worker=2, stall="2s", env={"OUT": str(yard.folder)})
    process = yard.start("run", "job.yaml", "-o", "json")
    wait_until(lambda: [*yard.folder.glob(".tfyard/runs/*/status.json")] != [], "it runs", TIMEOUT)
    wait_until(lambda: stalls(yard), "worker-0 is silent", TIMEOUT)
    why = yard.tfyard("why", "@latest", "--stacks")
    assert why.returncode == 3, why.stdout + why.stderr
    first, *_ = why.stdout.splitlines()
    assert first == "worker-0 has written no line for more than 2s: it hangs"
    for task in ("worker-0", "worker-1"):
        _, _, of_task = why.stdout.partition(f"\n{task}, process ")
        assert "waits_for_a_peer (" in of_task.partition("\n\n")[0], why.stdout
    told = json.loads(yard.tfyard("why", "@latest", "--stacks", "-o", "json").stdout)
    assert [cause["kind"] for cause in told["causes"]] == ["stalled"]
    assert "waits_for_a_peer" in told["stacks"][0]["stacks"]
    assert "Stalled" in yard.tfyard("get", "--local").stdout
    described = yard.tfyard("describe", "@latest").stdout
    assert "\nStalled:    worker-0 has written no line for more than 2s; the last one, at " in described
    (yard.folder / "go").touch()
    out, _ = process.communicate(timeout=TIMEOUT)
    events = [json.loads(line) for line in out.splitlines()]
    phases = [event["phase"] for event in events if event["event"] == "phase"]
    assert phases[-4:] == ["Running", "Stalled", "Running", "Succeeded"]
    assert status(yard).restarts == 0


def test_a_run_that_hangs_starts_all_its_tasks_again_if_that_is_wanted(yard: Yard) -> None:
    program = HANGS.replace('(out / "go").exists()', '(out / f"starts-{index}").read_text() != "x"')
    after = {"after": "2s", "then": "restart"}
    yard.job(program, worker=2, stall=after, retries=1, env={"OUT": str(yard.folder)})
    done = yard.run()
    assert done.code == 0, done.events
    assert [(yard.folder / f"starts-{index}").read_text() for index in (0, 1)] == ["xx", "xx"]
    known = status(yard)
    assert known.restarts == 1
    assert [(each.task, each.reason, each.message) for each in known.endings] == [
        ("worker-0", "Stalled", "step 1")
    ]
    warned = [
        event["text"] for event in done.events if event["event"] == "note" and event["level"] == "warning"
    ]
    (text,) = [each for each in warned if "has written no line" in each]
    assert "Z: step 1. All tasks start again together, which is one retry." in text


def test_a_progress_bar_is_a_sign_of_life(yard: Yard) -> None:
    program = """
import sys, time
for step in range(40):
    print(f"\\r{step}/40", end="", flush=True)
    time.sleep(0.1)
"""
    yard.job(program, stall={"after": "2s", "then": "restart"}, retries=0)
    assert yard.run().code == 0


ASKED = """
import faulthandler, json, os, signal, time
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
    faulthandler.register(signal.SIGUSR1)
def hangs_here():
    time.sleep(600)
print("step 1", flush=True)
hangs_here()
"""


@pytest.fixture
def without_py_spy(yard: Yard, tmp_path: Path) -> Yard:
    """A yard with an environment of its own, which has tfyard and no py-spy."""
    subprocess.run([sys._base_executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)  # type: ignore[attr-defined]
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    paths = [sysconfig.get_path("purelib"), *(each for each in sys.path if each.endswith("src"))]
    (packages / "here.pth").write_text("\n".join(paths))
    yard.python = str(tmp_path / "env" / "bin" / "python")
    return yard


def test_without_py_spy_only_programs_that_catch_the_signal_are_asked(without_py_spy: Yard) -> None:
    yard, path = without_py_spy, {"PATH": f"{Path(without_py_spy.python).parent}:/usr/bin:/bin"}
    yard.job(ASKED, worker=2)
    process = yard.start("run", "job.yaml", **path)
    try:
        wait_until(lambda: len([*yard.folder.glob(".tfyard/runs/*/logs/*.log")]) == 2, "both run", TIMEOUT)
        logs = [*yard.folder.glob(".tfyard/runs/*/logs/*.log")]
        wait_until(lambda: all("step 1" in log.read_text() for log in logs), "both wait", TIMEOUT)
        shown = yard.tfyard("why", "@latest", "--stacks", **path).stdout
        first, second = shown.split("\nworker-0, process ")[1].split("\nworker-1, process ")
        assert "in hangs_here" in first
        assert "py-spy is not installed, and the program does not catch SIGUSR1" in second
        assert "`pip install py-spy`" in second
        pids = [int(part.partition(":")[0]) for part in (first, second)]
        assert all(os.path.exists(f"/proc/{pid}") for pid in pids), "nothing was ended"  # noqa: PTH110
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate(timeout=60)
