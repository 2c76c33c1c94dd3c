"""Real jobs, run by the real command in a folder of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tfyard import formats

TIMEOUT = 240
Event = dict[str, Any]


class Yard:
    """A folder in which jobs are written and run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.through: list[str] = []
        """A command that starts the others: as somebody else, say."""
        self.python = sys.executable
        self.started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def job(self, script: str, **words: Any) -> None:
        """`job.yaml`, whose tasks all run this Python script."""
        self.write("task.py", script)
        words = {"name": "t", "image": "none", "code": ".", "run": ["python", "task.py"], **words}
        self.write("job.yaml", formats.to_yaml(words))

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self.through, self.python, "-m", "tfyard", *args],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        self.started.append(process)
        return process

    def tfyard(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*args, **env)
        out, err = process.communicate(timeout=TIMEOUT)
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def run(self, *args: str, **env: str) -> "Outcome":
        """`tfyard run job.yaml -o json` and what it told."""
        return self.watch(lambda _event: None, *args, **env)

    def watch(self, seen: Callable[[Event], None], *args: str, **env: str) -> "Outcome":
        """The same; each event is seen when it is told."""
        process, events = self.start("run", "job.yaml", "-o", "json", *args, **env), list[Event]()
        assert process.stdout is not None
        timer = Timer(TIMEOUT, process.kill)
        timer.start()
        try:
            for line in process.stdout:
                events.append(json.loads(line))
                seen(events[-1])
            _, errors = process.communicate()
        finally:
            timer.cancel()
        assert "Traceback" not in errors, errors
        return Outcome(process.returncode, events, self.folder)

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


class Outcome:
    def __init__(self, code: int, events: list[dict[str, Any]], folder: Path) -> None:
        self.code, self.events, self.folder = code, events, folder

    def of(self, kind: str, task: str | None = None) -> list[dict[str, Any]]:
        return [e for e in self.events if e["event"] == kind and (task is None or e["task"] == task)]

    def starts(self, task: str) -> int:
        return len(self.of("started", task))

    def lines(self, task: str) -> list[str]:
        return [event["text"] for event in self.of("log", task)]

    @property
    def directory(self) -> Path:
        (run,) = (self.folder / ".tfyard" / "runs").iterdir()
        return run

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "status.json").read_text())
        return found

    @property
    def message(self) -> str:
        return str(self.status["failure"]["message"])


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard(tmp_path)
    yield yard
    yard.close()


def survivors(mark: str) -> list[int]:
    """Processes that carry this word in their command line; zombies are dead."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def supervisor_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (found,) = [int(c) for c in children if b"supervisor" in Path(f"/proc/{c}/cmdline").read_bytes()]
    return found


def read_until(process: "subprocess.Popen[str]", text: str) -> str:
    """The line of its output that has this text. A program that ends without it has failed."""
    assert process.stdout is not None
    for line in iter(process.stdout.readline, ""):
        if text in line:
            return line
    raise AssertionError(f"it ended without {text!r}: {process.stderr.read() if process.stderr else ''}")


def wait_until(condition: Any, what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain: {what}"
        time.sleep(0.05)


def kill(pid: int, number: signal.Signals) -> None:
    os.kill(pid, number)
