"""Finds runs by their names. A folder may have ten thousand of them: no record is read of which the name of its
directory, `<job>-<date>-<time>`, tells that it is another one."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tfyard.backends.local.run_directory import HOME, RunDirectory, all_runs
from tfyard.errors import NoSuchJob
from tfyard.model.names import LATEST
from tfyard.model.spelling import nearest

_STAMP = r"-(?P<time>\d{8}-\d{6})(-(?P<number>\d+))?"


def find_run(name: str, home: Path = HOME, *, whole: bool = False) -> RunDirectory:
    """A run by its name, its job's name (the newest run), or its path; @latest is the newest of all. Unless the
    name must be `whole`, also by the beginning of its name, if only one job has runs that begin so."""
    if (known := run_called(name, home)) is not None:
        return known
    runs = list(all_runs(home))
    if name == LATEST and runs:
        return runs[0]
    for run in runs:
        if name and job_of(run) == name:
            return run
    with suppress(OSError):  # the name is too long for a path
        if name and (Path(name) / "run.json").exists():
            return RunDirectory(Path(name))
    begun = [run for run in runs if name and run.name.startswith(name)]
    if whole or len({job_of(run) for run in begun}) != 1:
        raise NoSuchJob(_not_found(name[:100], runs, begun, whole=whole))
    return begun[0]


def run_called(name: str, home: Path = HOME) -> RunDirectory | None:
    """The run of exactly this name, or the newest of the job of this name."""
    with suppress(OSError):  # the name is too long for a path
        if name.strip(".") and "/" not in name and (home / "runs" / name).is_dir():
            return RunDirectory(home / "runs" / name)
    return next(runs_of(name, home), None)


def runs_of(job: str, home: Path = HOME, before: str = "") -> Iterator[RunDirectory]:
    """The runs of a job, the newest first; `before`: only those that started before the run of this name."""
    runs = home / "runs"
    named = re.compile(re.escape(job) + _STAMP)
    stamps = {
        path: match
        for path in (runs.iterdir() if runs.is_dir() else ())
        if (match := named.fullmatch(path.name))
    }
    last = named.fullmatch(before)
    for path, match in sorted(stamps.items(), key=lambda each: _turn(each[1]), reverse=True):
        run = RunDirectory(path)
        if (last is None or _turn(match) < _turn(last)) and job_of(run) == job:
            yield run


def _turn(match: re.Match[str]) -> tuple[str, int]:
    return match["time"], int(match["number"] or 1)


def _not_found(name: str, runs: list[RunDirectory], begun: list[RunDirectory], *, whole: bool) -> str:
    if begun and not whole:
        firsts = {job_of(run): run.name for run in reversed(begun)}
        return f"run {name!r} is ambiguous; it is the beginning of {', '.join(sorted(firsts.values()))}"
    needs = "; the whole name is needed to change a run" if begun else ""
    meant = nearest(name, [*(run.name for run in runs), *map(job_of, runs)]) if name else None
    hint = f"did you mean {meant}?" if meant else "`tfyard runs` lists them"
    return f"run {name!r} not found{needs}; {hint}"


def job_of(run: RunDirectory) -> str:
    """The name of the run's job; of a run without a record, its own."""
    record = run.load()
    return record.job if record else run.name
