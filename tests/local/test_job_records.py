"""Runs whose files were damaged: what can be read is shown, and what cannot is named."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.local import job_records, options_file, runs
from tfyard.model.origin import Origin
from tfyard.model.run_record import RunRecord, TaskRecord
from tfyard.overview.job_record import told_software
from tfyard.tracking.orders import KEPT, kept

DAMAGED = {
    "cut": b'{"name": "a',
    "a flipped bit": b'{"name": "\xff", "submitter": "\xff", "run": "\xff", "phase": "\xff"}',
    "deep": b'{"x":' + b"[" * 100_000,
    "another type": b"[7]",
    "no JSON": b"\0" * 64,
}
damaged = pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    path = tmp_path / "a-20260101-100000"
    path.mkdir()
    return RunDirectory(path)


@damaged
def test_a_damaged_record_is_named_and_skipped(run: RunDirectory, text: bytes) -> None:
    (run.path / "record.json").write_bytes(text)
    known, diff, (problem,) = job_records.origin(run, None)
    assert (known, diff) == (Origin(), "")
    assert f"{run.path}/record.json is corrupt" in problem


def test_a_diff_that_cannot_be_read_is_named_and_one_that_can_keeps_its_line_ends(run: RunDirectory) -> None:
    (run.path / "record.json").write_bytes(msgspec.json.encode(Origin()))
    run.write("code.diff", "+a\r\n+ü\r\n")
    assert job_records.origin(run, None) == (Origin(), "+a\r\n+ü\r\n", [])
    (run.path / "code.diff").write_bytes(b"\xff")
    assert "code.diff is corrupt" in job_records.origin(run, None)[2][0]
    (run.path / "record.json").unlink()
    (run.path / "record.json").mkdir()
    assert "record.json cannot be read (Is a directory)" in job_records.origin(run, None)[2][0]


@damaged
def test_a_run_with_damaged_files_is_read_as_far_as_they_go(run: RunDirectory, text: bytes) -> None:
    for name in ("run.json", "status.json", "asked.json", KEPT):
        (run.path / name).write_bytes(text)
    (run.path / "metrics.jsonl").write_bytes(b'{"at": 1.0, "task": "a-0", "loss": 0.5}\n' + text + b"\n")
    assert (run.load(), run.is_corrupt) == (None, True)
    assert run.status().phase == ""
    assert options_file.log_dir(run) == ""
    assert kept(run.path) is None
    assert runs.points(run)[0].values == {"loss": 0.5}


def test_a_date_without_a_zone_is_damage(run: RunDirectory) -> None:
    """It could not be compared with any other, so one such run would end every list."""
    text = {"name": "a", "job": "a", "started": "2026-01-01T00:00:00", "ended": "2026-01-01T00:01:00"}
    (run.path / "run.json").write_bytes(msgspec.json.encode(text))
    assert (run.load(), run.is_corrupt) == (None, True)


def test_what_a_pod_tells_of_its_packages_may_be_nested_too_deeply() -> None:
    software = told_software(f"packages: {DAMAGED['deep'].decode()}\n")
    assert software is not None
    assert "is corrupt" in software.problem


@pytest.mark.parametrize(
    ("tasks", "hours"),
    [
        ([TaskRecord(name="a-0", outcome="Succeeded", cpu=3600.0, peak=1)], 1.0),
        (
            [
                TaskRecord(name="a-0", outcome="Running"),
                TaskRecord(name="a-1", outcome="Failed", cpu=9.0, peak=1),
            ],
            None,
        ),
        ([TaskRecord(name="a-0", outcome="Waiting", starts=0)], 0.0),
    ],
    ids=["ended", "running or killed", "not started"],
)
def test_what_was_not_measured_is_not_zero(
    run: RunDirectory, tasks: list[TaskRecord], hours: float | None
) -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    record = RunRecord(name=run.path.name, job="a", started=began, tasks=tuple(tasks))
    assert job_records.read(run, record).cpu_hours == hours
