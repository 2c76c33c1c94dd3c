"""A run without a terminal, as a notebook or a page would start it."""

import asyncio
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from tfyard.local.prepare import prepare
from tfyard.local.run import Execution
from tfyard.local.settings import RunOptions
from tfyard.model.run_events import Log, Over, Phase
from tfyard.model.run_record import RunRecord

pytestmark = pytest.mark.processes


def test_a_run_tells_its_events_and_returns_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("print('hello')")
    events: list[object] = []

    async def run() -> RunRecord:
        return await Execution(prepare(RunOptions(target="train.py", worker=2)), events.append).execute()

    record = asyncio.run(run())
    assert (record.phase, record.exit_code) == ("Succeeded", 0)
    assert [task.name for task in record.tasks] == ["worker-0", "worker-1"]
    assert Log("worker-0", "hello") in events
    assert [event.phase for event in events if isinstance(event, Phase)][-1] == "Succeeded"
    assert isinstance(events[-1], Over)
    assert capfd.readouterr() == ("", "")


def test_a_clock_that_is_set_back_does_not_end_a_run_before_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()

    class SetBack:
        @staticmethod
        def now(tz: tzinfo) -> datetime:
            return datetime.now(tz) - timedelta(hours=1)

    async def run() -> RunRecord:
        made = Execution(prepare(RunOptions(target="train.py")), lambda _event: None)
        monkeypatch.setattr("tfyard.local.run.datetime", SetBack)
        return await made.execute()

    record = asyncio.run(run())
    assert record.ended is not None
    assert timedelta(0) <= record.ended - record.started < timedelta(minutes=5)
