"""Run directories: found by name, written on a full disk, removed when they are old."""

import fcntl
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from tfyard.backends.local import run_directory, run_names
from tfyard.errors import NoSuchJob
from tfyard.model import Job
from tfyard.model.run_record import RunRecord

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_run(home: Path, name: str, job: str, **fields: object) -> None:
    folder = home / "runs" / name
    (folder / "logs").mkdir(parents=True)
    record = {"name": name, "job": job, "started": "2026-01-01T00:00:00Z", **fields}
    (folder / "run.json").write_text(json.dumps({"ended": "2026-01-01T00:00:09Z", **record}))


def test_a_run_is_found_by_its_name_before_its_jobs_before_a_beginning(tmp_path: Path) -> None:
    for name, job in (("tra-1", "tra"), ("tra-1-2", "tra"), ("tra-eval-1", "tra-eval")):
        make_run(tmp_path, name, job)
    assert run_names.find_run("tra-1", tmp_path).name == "tra-1"
    assert run_names.find_run("tra", tmp_path).name == "tra-1-2"
    assert run_names.find_run("tra-e", tmp_path).name == "tra-eval-1"
    with pytest.raises(NoSuchJob, match="'tr' is ambiguous; it is the beginning of tra-1-2, tra-eval-1"):
        run_names.find_run("tr", tmp_path)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("s", "not found; the whole name is needed to change a run; did you mean sho-20261118-072000?"),
        (
            "short-2",
            "not found; the whole name is needed to change a run; did you mean short?",
        ),
        ("shrot", "not found; did you mean short?"),
        ("other", "not found; `tfyard runs` lists them"),
        ("", "not found; `tfyard runs` lists them"),
    ],
)
def test_to_change_a_run_its_whole_name_is_needed(tmp_path: Path, name: str, hint: str) -> None:
    make_run(tmp_path, "short-20261118-072000", "short")
    if name == "s":
        make_run(tmp_path, "sho-20261118-072000", "sho")
    with pytest.raises(NoSuchJob, match=re.escape(f"run {name!r} {hint}")):
        run_names.find_run(name, tmp_path, whole=True)
    for whole in ("short", "short-20261118-072000", "@latest"):
        assert run_names.find_run(whole, tmp_path, whole=True).path.exists()


@pytest.mark.parametrize("name", ["", ".", "..", "long", "a\0b", "a\nb"])
def test_a_name_of_no_run_finds_none(tmp_path: Path, name: str) -> None:
    """Neither does an empty name, such as an empty variable of a script that stops or removes runs."""
    (tmp_path / "runs" / "tra-1").mkdir(parents=True)
    with pytest.raises(NoSuchJob, match="not found; `tfyard runs` lists them"):
        run_names.find_run("x" * 5000 if name == "long" else name, tmp_path)


def test_the_newest_run_has_a_name_of_its_own(tmp_path: Path) -> None:
    for number, name in enumerate(("b-1", "a-1", "c-1")):
        (tmp_path / "runs" / name).mkdir(parents=True)
        os.utime(tmp_path / "runs" / name, (number % 2, number % 2))
    assert run_names.find_run("@latest", tmp_path).name == "a-1"


def test_a_record_has_room_for_its_end_on_a_full_disk(tmp_path: Path) -> None:
    run = run_directory.RunDirectory.make(tmp_path, Job(name="t"), NOW, lambda _text: None)
    running = RunRecord(name=run.name, job="t", started=NOW, pid=os.getpid())
    run.record(running)
    assert run.load() == replace(running, is_locked=True)
    (run.path / "run.json.new").mkdir()  # stands for a disk that takes no new file
    ended = replace(running, ended=NOW, phase="Failed", message="x" * 3_000, pid=0)
    run.record(ended)
    assert run.load() == replace(ended, is_locked=True)


def test_leftovers_of_a_run_that_never_began_are_removed(tmp_path: Path) -> None:
    """The run was killed while its code was fetched, or its disk was full. Output of tasks is kept."""
    runs = tmp_path / "runs"
    for name in ("killed", "full", "written", "going", "young"):
        (runs / name / "logs").mkdir(parents=True)
    (runs / "killed" / "code").mkdir()
    (runs / "full" / "logs" / "worker-0.1.log").touch()
    (runs / "written" / "logs" / "worker-0.1.log").write_text("a line")
    for path in runs.iterdir():
        hour = (NOW - timedelta(hours=path.name != "young")).timestamp()
        os.utime(path, (hour, hour))
    directory = os.open(runs / "going", os.O_RDONLY)
    fcntl.flock(directory, fcntl.LOCK_EX)
    run_directory.sweep(NOW, tmp_path)
    os.close(directory)
    assert sorted(path.name for path in runs.iterdir()) == ["going", "written", "young"]


def test_a_row_that_a_full_disk_has_cut_is_left_out(tmp_path: Path) -> None:
    run = run_directory.RunDirectory(tmp_path)
    run.append("metrics.jsonl", {"loss": 1.0}, {"loss": 0.5})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"loss": 0.')
    assert run.rows("metrics.jsonl") == [{"loss": 1.0}, {"loss": 0.5}]
    assert run.rows("absent.jsonl") == []


@pytest.mark.processes
def test_rows_are_appended_whole_or_not_at_all(tmp_path: Path) -> None:
    """A process that may write 1,000 bytes to a file stands for a full disk."""
    program = f"""
import resource, signal
from pathlib import Path
from tfyard.backends.local.run_directory import RunDirectory
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
run = RunDirectory(Path({str(tmp_path)!r}), print)
for step in range(10):
    run.append("metrics.jsonl", {{"step": step, "text": "x" * 300}})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.count("the run continues, but its logs and its record are incomplete") == 1
    rows = run_directory.RunDirectory(tmp_path).rows("metrics.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert (tmp_path / "metrics.jsonl").read_text().endswith("}\n")


def test_without_locks_the_process_id_tells_whether_a_run_goes_on(tmp_path: Path) -> None:
    make_run(tmp_path, "here", "t", ended=None, pid=os.getpid())
    make_run(tmp_path, "gone", "t", ended=None, pid=2**22 + 1)
    records = {run.name: run.load() for run in run_directory.all_runs(tmp_path)}
    assert {name: record.phase for name, record in records.items() if record} == {
        "here": "Running",
        "gone": "Killed",
    }


def test_a_killed_run_is_found_although_its_supervisor_still_removes_files(tmp_path: Path) -> None:
    """A dangling link is listed and does not exist, like a file that is removed meanwhile."""
    make_run(tmp_path, "gone", "t", ended=None, pid=2**22 + 1)
    (run,) = run_directory.all_runs(tmp_path)
    (run.path / "scratch").symlink_to("removed")
    assert (record := run.load()) is not None
    assert record.phase == "Killed"
