"""Runs of this machine, read as any job is: by a list, by name, by events, and line by line."""

import asyncio
from pathlib import Path

import pytest

from tfyard.backends.local.reader import LocalReader, send
from tfyard.errors import Usage
from tfyard.local.prepare import prepare
from tfyard.local.run import Run
from tfyard.local.settings import Settings
from tfyard.model import Task

pytestmark = pytest.mark.processes


async def run(text: str, name: str) -> None:
    Path(f"{name}.py").write_text(text)
    await Run(prepare(Settings(target=f"{name}.py", worker=1)), lambda _event: None).execute()


async def test_runs_are_read_by_list_by_name_and_by_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await run("print('done')", "good")
    await run("raise SystemExit(3)", "bad")
    reader = LocalReader()
    newest, oldest = send(reader.list_jobs())
    assert (newest.job, newest.status.phase, newest.namespace) == ("bad", "Failed", "")
    assert (oldest.job, oldest.status.phase) == ("good", "Succeeded")
    assert oldest.name.startswith("good-")
    assert send(reader.get_job("good")) == oldest
    assert [(event.type, event.reason) for event in send(reader.list_events("bad"))] == [
        ("Normal", "ExitedWithCode"),
        ("Warning", "TFJobFailed"),
    ]


async def test_a_log_is_followed_to_the_end_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    running = asyncio.create_task(run("import time\nprint('one')\ntime.sleep(0.5)\nprint('two')", "slow"))
    reader = LocalReader()
    async for jobs in reader.watch():
        if jobs and jobs[0].status.phase == "Running":
            break
    assert [line async for line in reader.follow("slow", Task("Worker", 0))] == ["one", "two"]
    await running
    with pytest.raises(Usage, match="has no logs of ps-0"):
        await anext(reader.follow("slow", Task("PS", 0)))
