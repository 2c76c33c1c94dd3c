"""A comparison as a table of a terminal, as CSV, as Markdown and as values for JSON."""

import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from tfyard.overview import metrics
from tfyard.overview.best_values import BestValue, best_values
from tfyard.overview.comparison import ComparedJob, ComparedMetric, Comparison, Row, compare, told
from tfyard.overview.job_record import UNKNOWN
from tfyard.overview.table import GAP, widths
from tfyard.overview.table import lines as columns
from tfyard.overview.wording import harmless, number

LONGEST_CELL = 48
"""Characters of a cell in a terminal."""


def rows(comparison: Comparison) -> list[tuple[str, Row]]:
    """(section, row) of everything, values as they are."""
    return [
        *(("job", row) for row in comparison.facts if any(row[1:])),
        *((each.section, (each.name, *each.values)) for each in comparison.differences),
        *(("metrics", row) for each in comparison.metrics for row in _metric_rows(each)),
    ]


def _metric_rows(metric: ComparedMetric) -> Iterator[Row]:
    yield (f"{metric.name} last", *(_placed(each, "last") for each in metric.values))
    if any(each is not None and each.best is not None for each in metric.values):
        yield (f"{metric.name} best", *(_placed(each, "best") for each in metric.values))


def _placed(value: BestValue | None, which: str) -> str:
    if value is None:
        return ""
    shown, at = (value.last, value.at) if which == "last" else (value.best, value.best_at)
    if shown is None:
        return ""
    return number(shown) if at is None else f"{number(shown)} at {value.unit} {at:,}"


def table(comparison: Comparison) -> list[Row]:
    """Rows for a terminal: a header, and a section's name only where it begins."""
    return [("", "", *comparison.labels), *_sections(rows(comparison))]


def record_lines(job: ComparedJob, now: datetime) -> list[str]:
    """What is known of one job; of its packages, only Python and TensorFlow."""
    alone = compare([job], now)
    shown = [
        (section, (name, value))
        for (section, name), value in told(job)
        if value not in ("", UNKNOWN) and (section != "packages" or name in ("python", "tensorflow"))
    ]
    rows_of_job = [*(("job", row) for row in alone.facts if row[1]), *shown]
    rows_of_job += [("metrics", row) for each in alone.metrics for row in _metric_rows(each)]
    notes = [harmless(f"note: {note.removeprefix(f'{job.label}: ')}") for note in alone.notes]
    return [*columns([("", "", job.label), *_sections(rows_of_job)]), *([""] if notes else []), *notes]


def _sections(rows: Iterable[tuple[str, Row]]) -> list[Row]:
    cells_by_section, before = list[Row](), "job"
    for section, row in rows:
        if section != before:
            cells_by_section.append(())
        cells = (_cut(cell) for cell in row)
        cells_by_section.append((section if section != before and section != "job" else "", *cells))
        before = section
    return cells_by_section


def csv(comparison: Comparison) -> str:
    """Plain values; the steps of metrics have rows of their own."""
    table: list[Row] = [("section", "name", *comparison.labels)]
    table += [(section, *row) for section, row in rows(comparison) if section != "metrics"]
    table += [("metrics", *row) for each in comparison.metrics for row in _plain_rows(each)]
    return "".join(harmless(",".join(map(metrics.quoted, row))) + "\r\n" for row in table)


def _plain_rows(metric: ComparedMetric) -> Iterator[Row]:
    """The last and the best values, and the steps or epochs at which they were."""
    for kind, value, at in (("last", "last", "at"), ("best", "best", "best_at")):
        yield f"{metric.name} {kind}", *(_plain_cell(each, value) for each in metric.values)
        for unit in dict.fromkeys(each.unit for each in metric.values if each):
            counted = [each if each and each.unit == unit else None for each in metric.values]
            yield f"{metric.name} {kind} at {unit}", *(_plain_cell(each, at) for each in counted)


def _plain_cell(value: BestValue | None, field: str) -> str:
    plain = getattr(value, field, None)
    return "" if plain is None else str(plain)


def markdown(comparison: Comparison) -> str:
    header = ("", "", *comparison.labels)
    body = [header, ("---",) * len(header), *((section, *row) for section, row in rows(comparison))]
    return "".join(f"| {harmless(' | '.join(map(_escaped, row)))} |\n" for row in body)


def plain(comparison: Comparison) -> dict[str, Any]:
    """Values for JSON, which has neither nan nor inf."""
    return {
        "jobs": [{"label": job.label, **plain_record(job)} for job in comparison.jobs],
        "differences": [msgspec.to_builtins(each) for each in comparison.differences],
        "metrics": [
            {"name": each.name, "values": [value and plain_metric(value) for value in each.values]}
            for each in comparison.metrics
        ],
        "notes": list(comparison.notes),
    }


def plain_record(job: ComparedJob) -> dict[str, Any]:
    """The whole record with its metrics."""
    metrics = [plain_metric(each) for each in best_values(job.points)]
    return {**msgspec.to_builtins(job.record), "metrics": metrics}


def plain_metric(value: BestValue) -> dict[str, Any]:
    last = value.last if math.isfinite(value.last) else str(value.last)
    return {**msgspec.structs.asdict(value), "last": last}


def lines(comparison: Comparison, room: int | None = None) -> Iterator[str]:
    """What a terminal of this width shows, without the curves. Where not all jobs fit beside each other, there are
    several tables, each with the baseline."""
    for turn, part in enumerate(_tables(table(comparison), room)):
        yield from ["", *columns(part)] if turn else columns(part)
    if not comparison.differences:
        yield ""
        yield "nothing that is known differs"
    if comparison.notes:
        yield ""
        yield from (harmless(f"note: {note}") for note in comparison.notes)


def _tables(rows: list[Row], room: int | None) -> Iterator[list[Row]]:
    wide, jobs = widths(rows), len(rows[0]) - 2
    if room is None or jobs < 2 or sum(wide) - GAP <= room:
        yield rows
        return
    left, label = room - sum(wide[:2]) + GAP, max(map(len, rows[0])) + GAP
    at_once = max(2, min(jobs, left // label))
    longest = max(label, left // at_once) - GAP
    for first in range(3, jobs + 2, at_once - 1):
        chosen = [0, 1, 2, *range(first, min(first + at_once - 1, jobs + 2))]
        yield [
            tuple(_cut(row[at], longest if at > 1 else LONGEST_CELL) for at in chosen if row) for row in rows
        ]


def _cut(cell: str, longest: int = LONGEST_CELL) -> str:
    joined = " ".join(cell.split())
    return joined if len(joined) <= longest else f"{joined[: longest - 1]}…"


def _escaped(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())
