"""The loop on this machine, also without control groups, and its hints about known errors."""

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from tfyard import formats
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import loop
from tfyard.local.loop import Loop, hint
from tfyard.local.machine import machine
from tfyard.local.prepare import prepare
from tfyard.local.settings import RunOptions
from tfyard.model import Status
from tfyard.model.run_events import Counts, Note, RunEvent
from tfyard.node.interpreter import Interpreter

PYTHON = Interpreter("/usr/bin/python", "the first on PATH")
TF1 = "the program is written for TensorFlow 1: run it with --tf1 (job file: `tf1: true`)"
TWICE = (
    "AbortedError: From /job:ps/replica:0/task:0:\nThe same RunGraph (Worker) request was received twice. x"
)


def run(
    words: dict[str, object], folder: Path, watch: Callable[[RunEvent], None] = lambda _event: None
) -> Status:
    """On a machine that allows no control groups."""
    (folder / "job.yaml").write_text(formats.to_yaml(words))
    prepared = prepare(RunOptions(target=str(folder / "job.yaml")))
    directory = RunDirectory.make(folder, prepared.job, datetime.now(UTC), lambda _text: None)
    loop = Loop(
        prepared,
        replace(machine(prepared, directory.path), use_cgroups=False),
        directory,
        watch,
    )
    asyncio.run(loop.run({}))
    prepared.ports.release()
    return loop.status


@pytest.mark.processes
def test_without_control_groups_memory_is_sampled_and_the_end_is_the_same(tmp_path: Path) -> None:
    script = "import time; x = bytearray(300_000_000); time.sleep(1000)"
    words = {"name": "j", "image": "none", "run": [sys.executable, "-c", script], "memory": "150Mi"}
    failure = run({**words, "worker": 1}, tmp_path).failure
    assert failure is not None
    assert failure.exit_code == 137
    assert "OOMKilled" in failure.message


@pytest.mark.processes
def test_the_screen_says_once_that_tasks_wait_for_an_init_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SHOW_STEPS_AFTER", 1.0)
    told, line = tmp_path / "told", "until [ -e $TOLD ]; do sleep 0.05; done"
    step = {"name": "prepare", "image": "none", "command": ["sh", "-c", line]}
    step["env"] = [{"name": "TOLD", "value": str(told)}]
    notes: list[str] = []

    def watch(event: RunEvent) -> None:
        if isinstance(event, Note):
            notes.append(event.text)
            told.touch()

    overlay = {"spec": {"initContainers": [step]}}
    words = {"name": "j", "image": "none", "run": ["true"], "worker": 2, "overlay": overlay}
    assert run(words, tmp_path, watch).has("Succeeded")
    assert notes == ["worker-0 and worker-1 wait for the init container prepare, which has run for 1 s"]


@pytest.mark.processes
def test_the_stored_status_counts_each_task_as_soon_as_it_runs(tmp_path: Path) -> None:
    """`tfyard get` and the page read it. One task waits in its init container until the job runs."""
    first, told, counted = (tmp_path / name for name in ("first", "told", "counted"))
    line = f"mkdir {first} || until [ -e {told} ]; do sleep 0.05; done"
    step = {"name": "prepare", "image": "none", "command": ["sh", "-c", line]}
    stored: list[tuple[str, str]] = []

    def watch(event: RunEvent) -> None:
        if isinstance(event, Counts):
            (run,) = (tmp_path / "runs").iterdir()
            status = RunDirectory(run).status()
            stored.append((status.phase, status.replica_statuses["Worker"].ready))
            if status.phase == "Running":
                told.touch()
            if stored[-1][1] == "2/2":
                counted.touch()

    words = {
        "name": "j",
        "image": "none",
        "run": ["sh", "-c", f"until [ -e {counted} ]; do sleep 0.05; done"],
        "worker": 2,
        "deadline": "60s",
        "overlay": {"spec": {"initContainers": [step]}},
    }
    assert run(words, tmp_path, watch).has("Succeeded")
    assert stored.index(("Running", "1/2")) < stored.index(("Running", "2/2"))


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            "ModuleNotFoundError: No module named 'tensorflow'",
            "python is /usr/bin/python (the first",
        ),
        ("ModuleNotFoundError: No module named 'tensorflow.examples.tutorials'", TF1),
        ("ModuleNotFoundError: No module named 'tensorflow.contrib'", TF1),
        ("AttributeError: module 'tensorflow' has no attribute 'app'", TF1),
        ("AttributeError: module 'tensorflow' has no attribute 'konstant'", ""),
        (TWICE, "TensorFlow gave two steps the same id"),
        ("ValueError: bad rate", ""),
    ],
)
def test_a_known_error_gets_its_fix(log: str, expected: str) -> None:
    text = hint(PYTHON, f"Traceback (most recent call last):\n{log}\n", tf1=False)
    assert text.startswith(expected)
    assert bool(text) == bool(expected)


def test_a_program_that_has_tensorflow_1_already_is_not_told_to_ask_for_it() -> None:
    assert hint(PYTHON, "AttributeError: module 'tensorflow' has no attribute 'app'", tf1=True) == ""
