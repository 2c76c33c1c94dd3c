"""A run on this machine, as `describe` shows it."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local.views import view
from tfyard.model.run_record import RunRecord, TaskRecord
from tfyard.node.log_times import RECORD, SECOND

BEGAN = datetime(2024, 11, 16, 4, tzinfo=UTC)


def test_every_task_has_times_of_its_own_where_they_were_kept(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "j-1")
    (run.path / "logs").mkdir(parents=True)
    ended = BEGAN + timedelta(hours=1)
    tasks = (
        TaskRecord(name="worker-0", outcome="Succeeded", starts=2),
        TaskRecord(name="worker-1", outcome="Succeeded"),
    )
    record = RunRecord(name="j-1", job="j", started=BEGAN, ended=ended, phase="Succeeded", tasks=tasks)
    log = run.path / "logs" / "worker-0.2.log"
    log.touch()
    began = int(BEGAN.timestamp()) * SECOND + 60 * SECOND
    log.with_name(".worker-0.2.log.times").write_bytes(RECORD.pack(0, began) + RECORD.pack(0, began + SECOND))
    os.utime(log, ns=(began, began))
    found = {each.task: (each.started, each.finished) for each in view(run, record).attempts}
    minute = BEGAN + timedelta(minutes=1)
    assert found["worker-0"] == (minute, minute + timedelta(seconds=1))
    assert found["worker-1"] == (BEGAN, ended)
