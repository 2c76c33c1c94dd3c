"""All tasks run, and nothing happens: no output for a long time, or a loss that is not a number."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import isnan

from tfyard.overview.cause import TASKS, Cause, Quote, cut, named
from tfyard.overview.evidence import Evidence
from tfyard.overview.wording import duration

LONGEST = timedelta(minutes=10)
SERVERS = ("ps-",)
"""They are silent while all goes well."""


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    if evidence.status.is_finished:
        return
    yield from _not_a_number(evidence, evidence.up)
    yield from _silent(evidence, {task for task in evidence.up if not task.startswith(SERVERS)}, now)


def _silent(evidence: Evidence, up: set[str], now: datetime) -> Iterator[Cause]:
    """All that were looked at: a worker that waits for the others is silent, too."""
    times = {task: log.at for task, log in evidence.logs.items() if task in up and log.at is not None}
    if not times:
        return
    last = max(times, key=lambda task: times[task])
    quiet = now - times[last]
    if quiet < LONGEST:
        return
    line = evidence.logs[last].text.strip().rpartition("\n")[2]
    sentence = f"{named(sorted(times))} printed nothing for {duration(quiet.total_seconds())}"
    fix = "see what they do: `py-spy dump --pid 1` in the container"
    if evidence.is_local:
        fix = "see what they do: `py-spy dump --pid PID`"
    quote = Quote("log", cut(line or "no output at all"), times[last])
    tasks = tuple(sorted(times))
    yield Cause(
        kind="no-progress", sentence=sentence, fix=fix, tasks=tasks, evidence=(quote,), is_symptom=True
    )


def _metrics(log: str) -> list[dict[str, float]]:
    from tfyard.formats.loglines import read_lines  # slow to import, and seldom needed

    return [reading.values for reading in read_lines(log)]


def _not_a_number(evidence: Evidence, up: set[str]) -> Iterator[Cause]:
    for task in sorted(up):
        log = evidence.logs.get(task)
        values = _metrics(log.text) if log and "nan" in log.text.lower() else []
        names = [name for name, value in (values[-1] if values else {}).items() if isnan(value)]
        if log is not None and names:
            line = next(line for line in reversed(log.text.split("\n")) if "nan" in line.lower())
            fix = "stop it; then a smaller learning rate, gradient clipping, or check the data for NaN"
            sentence = f"{', '.join(names)} of {TASKS} is not a number, and the training goes on"
            yield Cause(
                kind="nan-loss",
                sentence=sentence,
                fix=fix,
                tasks=(task,),
                evidence=(Quote("log", cut(line), log.at),),
            )
