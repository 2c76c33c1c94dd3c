"""Past runs of this folder: list them, find one, read its metrics and logs."""

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

from tfyard.backends.local import run_directory
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Usage
from tfyard.formats.loglines import COUNTS, stored
from tfyard.model.run_events import Metric
from tfyard.overview.progress import Progress
from tfyard.overview.record import RunRecord


def records(now: datetime) -> list[RunRecord]:
    """Newest first; those whose time to live is over are removed."""
    run_directory.sweep(now)
    return [record for run in run_directory.all_runs() if (record := run.load()) is not None]


def find(name: str) -> tuple[RunDirectory, RunRecord]:
    run_directory.sweep_scratch()
    run = run_directory.find_run(name)
    record = run.load()
    if record is None:
        raise Usage(f"{run.name} has no record: it never started")
    return run, record


def remove(name: str) -> str:
    """Remove a run and its logs; returns its name. Volumes stay: other runs use them too."""
    run = run_directory.find_run(name)
    record = run.load()
    if record is not None and record.ended is None:
        raise Usage(f"{run.name} is still running; stop it first (process {record.pid})")
    shutil.rmtree(run.path)
    return run.name


def progress(run: RunDirectory) -> Progress:
    """As its metrics tell."""
    found = Progress()
    for row in run.metrics():
        values = stored({name: value for name, value in row.items() if name not in ("at", "task", *COUNTS)})
        counts: dict[str, Any] = {name: row.get(name) for name in COUNTS}
        found.note(Metric(task=row["task"], values=values, **counts), row["at"])
    return found


def logs(name: str, task: str | None) -> list[Path]:
    """One for each start of each task, or of one task."""
    run_directory.sweep_scratch()
    run = run_directory.find_run(name)
    found = run.logs(task)
    if found:
        return found
    known = sorted({path.name.rsplit(".", 2)[0] for path in run.logs()})
    others = f" of {task}; it has those of {', '.join(known)}" if known else ""
    raise Usage(f"{run.name} has no logs{others}")
