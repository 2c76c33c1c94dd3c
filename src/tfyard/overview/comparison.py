"""Jobs side by side: what differs between them, their metrics, and what they cost."""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from tfyard.overview import metrics
from tfyard.overview.best_values import BestValue, best_values
from tfyard.overview.job_record import UNKNOWN, JobRecord, RoleRecord
from tfyard.overview.metrics import Point
from tfyard.overview.progress import Progress
from tfyard.overview.wording import duration, hours, size

Row = tuple[str, ...]
"""A name, and a cell for each job."""
SHORT_COMMIT = 12


class ComparedJob(Struct, frozen=True, kw_only=True):
    """One side of a comparison."""

    label: str
    record: JobRecord
    points: tuple[Point, ...] = ()


class Difference(Struct, frozen=True):
    section: str
    """parameters, code, packages, image, roles or machine."""
    name: str
    values: tuple[str, ...]
    """The value of each job, which is empty if the job has none."""


class ComparedMetric(Struct, frozen=True):
    name: str
    values: tuple[BestValue | None, ...]
    """The values of each job, which are None if the job did not report the metric."""


class Comparison(Struct, frozen=True, kw_only=True):
    """The first job is the baseline."""

    labels: tuple[str, ...]
    jobs: tuple[ComparedJob, ...]
    facts: tuple[Row, ...]
    """The state, the times and the costs of each job."""
    differences: tuple[Difference, ...]
    metrics: tuple[ComparedMetric, ...]
    notes: tuple[str, ...]
    """Each note says what is not known of a job, and why."""


def compare(jobs: Sequence[ComparedJob], now: datetime) -> Comparison:
    return Comparison(
        labels=tuple(job.label for job in jobs),
        jobs=tuple(jobs),
        facts=tuple((name, *(tell(job.record, now) for job in jobs)) for name, tell in _FACTS.items()),
        differences=tuple(_differences(jobs)),
        metrics=tuple(_metrics(jobs)),
        notes=tuple(_notes(jobs)),
    )


# --- facts


def _took(record: JobRecord, now: datetime) -> str:
    if record.started is None:
        return ""
    return duration(max(0.0, ((record.ended or now) - record.started).total_seconds()))


def _cpu(record: JobRecord, _now: datetime) -> str:
    return "" if record.cpu_hours is None else f"{hours(record.cpu_hours)} {record.cpu_is}"


_FACTS: dict[str, Callable[[JobRecord, datetime], str]] = {
    "state": lambda record, _: record.state,
    "exit code": lambda record, _: "" if record.exit_code is None else str(record.exit_code),
    "started": lambda record, _: f"{record.started:%Y-%m-%d %H:%M:%S} UTC" if record.started else "",
    "took": _took,
    "restarts": lambda record, _: str(max(0, len(record.attempts) - len({e.task for e in record.attempts}))),
    "CPU hours": _cpu,
    "GPU hours": lambda record, _: "" if record.gpu_hours is None else hours(record.gpu_hours),
}


# --- differences


def _differences(jobs: Sequence[ComparedJob]) -> Iterator[Difference]:
    facts_of_jobs = [dict(told(job)) for job in jobs]
    keys = dict.fromkeys(key for facts in facts_of_jobs for key in facts)
    has_other_parameters = False
    for section, name in sorted(keys, key=lambda key: _SECTIONS.index(key[0])):
        values = tuple(_value(facts, section, name) for facts in facts_of_jobs)
        if len({value for value in values if value != UNKNOWN}) < 2 or (
            section == "command" and has_other_parameters
        ):
            continue
        has_other_parameters |= section == "parameters"
        yield Difference(section, name, values)


_SECTIONS = ("parameters", "command", "code", "packages", "image", "roles", "machine")


def _value(facts: dict[tuple[str, str], str], section: str, name: str) -> str:
    if section == "packages" and ("packages", UNKNOWN) in facts:
        return UNKNOWN
    return facts.get((section, name), "")


def told(job: ComparedJob) -> Iterator[tuple[tuple[str, str], str]]:
    """(section, name) and value of everything that may differ."""
    record = job.record
    yield from ((("parameters", name), value) for name, value in record.origin.parameters.items())
    yield ("command", "command"), " ".join(record.origin.command)
    yield from ((("code", name), value) for name, value in _code(job))
    yield from ((("packages", name), value) for name, value in _packages(record))
    for role in record.roles:
        is_named_by_digest = bool(role.digest) and "@" in role.image  # as by `rerun --exact`
        yield ("image", role.name.lower()), UNKNOWN if is_named_by_digest else role.image
        yield ("image", f"{role.name.lower()} digest"), role.digest or UNKNOWN
    for role in record.roles:
        yield from ((("roles", f"{role.name.lower()} {what}"), value) for what, value in _role(role))
    yield from ((("machine", name), value) for name, value in _machine(record))


def _code(job: ComparedJob) -> Iterator[tuple[str, str]]:
    code = job.record.origin.code
    yield "commit", code.commit[:SHORT_COMMIT] or UNKNOWN
    yield "branch", code.branch
    yield "from", code.remote
    yield "folder", code.folder
    yield "not committed", _uncommitted(job) if code.commit else UNKNOWN


def _uncommitted(job: ComparedJob) -> str:
    """The size of the diff, and a hash that tells it from others of that size."""
    code = job.record.origin.code
    if code.is_dirty is None and code.problem:
        return UNKNOWN
    if not code.is_dirty:
        return "nothing"
    lines = job.record.diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    mark = hashlib.sha256("\n".join((job.record.diff, *code.missing)).encode()).hexdigest()[:6]
    return f"{len(code.changed)} file{'s'[: len(code.changed) != 1]}, +{added} -{removed} ({mark})"


def _packages(record: JobRecord) -> Iterator[tuple[str, str]]:
    yield "tensorflow", record.tensorflow or UNKNOWN
    software = record.origin.software
    if software is None or software.problem:
        yield UNKNOWN, UNKNOWN
        return
    yield "python", software.python
    yield from ((name, value) for name, value in software.packages.items() if name != "tensorflow")


def _role(role: RoleRecord) -> Iterator[tuple[str, str]]:
    yield "tasks", str(role.tasks)
    yield "cpu", role.cpu
    yield "memory", role.memory
    yield "gpus", f"{role.gpus:g}" if role.gpus else ""


def _machine(record: JobRecord) -> Iterator[tuple[str, str]]:
    machine = record.origin.machine
    yield "place", f"the namespace {record.namespace}" if record.namespace else "this machine"
    yield "nodes", ", ".join(record.nodes) or (machine.name if machine else UNKNOWN)
    yield "devices", ", ".join(record.devices)
    yield "submitter", record.origin.submitter or UNKNOWN
    yield "tfyard", record.origin.tfyard or UNKNOWN
    if machine:
        yield "system", machine.system
        yield "cpus", str(machine.cpus)
        yield "memory", size(machine.memory)
        yield "gpus", ", ".join(machine.gpus)


# --- metrics


def _metrics(jobs: Sequence[ComparedJob]) -> Iterator[ComparedMetric]:
    values_of_jobs = [
        {_metric(each.name, each.task): each for each in best_values(job.points)} for job in jobs
    ]
    for name in dict.fromkeys(name for values in values_of_jobs for name in values):
        yield ComparedMetric(name, tuple(values.get(name) for values in values_of_jobs))


def _metric(name: str, task: str) -> str:
    """The name of a metric without its task: one job may be led by a chief, and the other one by a worker."""
    return f"{name} (evaluator)" if task.startswith("evaluator") else name


def progress(job: ComparedJob) -> Progress:
    return metrics.progress(job.points)


def curves(comparison: Comparison) -> dict[str, list[tuple[str, list[tuple[int, float]]]]]:
    """Metric -> the curves of the jobs that have one, with their labels."""
    curves: dict[str, list[tuple[str, list[tuple[int, float]]]]] = {}
    for job in comparison.jobs:
        for (task, name), points in progress(job).history.items():
            finite = [(x, y) for x, y in points if math.isfinite(y)]
            if len(finite) > 1:
                curves.setdefault(_metric(name, task), []).append((job.label, finite))
    return curves


def _notes(jobs: Sequence[ComparedJob]) -> Iterator[str]:
    for job in jobs:
        origin, software = job.record.origin, job.record.origin.software
        yield from (f"{job.label}: {problem}" for problem in job.record.problems)
        if origin.code.problem:
            yield f"{job.label}: code: {origin.code.problem}"
        yield from (f"{job.label}: not in the diff: {text}" for text in origin.code.missing)
        if software is None or software.problem:
            why = software.problem if software else "no script of tfyard runs in its pods"
            yield f"{job.label}: packages are unknown{f': {why}' if job.record.origin.at else ''}"
