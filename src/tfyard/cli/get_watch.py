"""`tfyard get -w`: the list, then a row for each change, until Ctrl-C."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from tfyard.cli import cluster, target
from tfyard.cli.output import Output
from tfyard.errors import TfyardError, Usage
from tfyard.kube import Resource
from tfyard.model.summary import JobSummary
from tfyard.overview import job_table, table

LOOK_EVERY = 1.0
"""Seconds between two looks at the runs of this machine."""
FORMS = ("table", "wide", "name")


class _News(Struct, frozen=True):
    rows: list[tuple[str, JobSummary]]
    """With what `-o name` prints of each."""


News = _News | TfyardError


def follow(names: Sequence[str], output: Output, options: Mapping[str, Any]) -> None:
    if output.form not in FORMS:
        raise Usage(f"-w prints {', '.join(FORMS)}; for {output.form}, `tfyard wait` and then `tfyard get`")
    names = [_known(name, options) for name in names]
    news: queue.SimpleQueue[News] = queue.SimpleQueue()
    sources = [*_cluster_sources(options), *_run_sources(options)]
    if not sources:
        raise Usage("there is nothing to watch: no kubeconfig, and no runs here")
    for source in sources:
        threading.Thread(target=_run, args=(source, news), daemon=True).start()
    _print(names, output, options, [news.get() for _ in sources], news)


def _print(
    names: Sequence[str],
    output: Output,
    options: Mapping[str, Any],
    first: Sequence[News],
    news: "queue.SimpleQueue[News]",
) -> None:
    """The first answer of each source in one table, then what each of them says."""
    printer = _Printer(names, output, options)
    rows = [row for each in first for row in _rows(each)]
    printer.show(sorted(rows, key=_order), is_first=True)
    while True:
        printer.show(_rows(news.get()))


def _known(name: str, options: Mapping[str, Any]) -> str:
    """The name of a job or a run; a run's job is named as it is, because its next run is meant, too."""
    found = target.find(name, options)
    if isinstance(found, target.ClusterJob):
        found.client.close()
        return found.found.name
    return name if name == found.record.job else found.record.name


def _rows(news: News) -> list[tuple[str, JobSummary]]:
    if isinstance(news, TfyardError):
        raise news
    return news.rows


def _order(row: tuple[str, JobSummary]) -> tuple[object, ...]:
    _, job = row
    return not job.namespace, job.namespace, job.name


class _Printer:
    """Keeps columns as wide as they have become."""

    def __init__(self, names: Sequence[str], output: Output, options: Mapping[str, Any]) -> None:
        self._names, self._output = set(names), output
        self._is_wide = output.form == "wide"
        self._has_headers = not options["no_headers"]
        self._namespaced = options["all_namespaces"] or (
            cluster.is_configured(options) and not options["local"] and target.wants_runs(options)
        )
        self._widths: list[int] = []

    def show(self, jobs: Sequence[tuple[str, JobSummary]], *, is_first: bool = False) -> None:
        now = datetime.now(UTC)
        chosen = [(title, job) for title, job in jobs if not self._names or {job.name, job.job} & self._names]
        rows = [job_table.row(job, now, self._is_wide, self._namespaced) for _, job in chosen]
        if self._output.form == "name":
            rows = [(title,) for title, _ in chosen]
        elif is_first and self._has_headers:
            rows.insert(0, job_table.columns(self._is_wide, self._namespaced))
        self._widths = table.widths(rows, self._widths)
        for row in rows:
            click.echo(table.line(row, self._widths))


Source = Callable[[Callable[[News], None]], None]


def _run(source: Source, news: "queue.SimpleQueue[News]") -> None:
    try:
        source(news.put)
    except TfyardError as problem:
        news.put(problem)


def _cluster_sources(options: Mapping[str, Any]) -> list[Source]:
    """One for each API group, with a connection of its own."""
    if options["local"] or not cluster.is_configured(options):
        return []
    from tfyard.remote import jobs

    with cluster.connect(options) as client:
        namespace = "" if options["all_namespaces"] else client.access.namespace
        scope = jobs.Scope(namespace, options["selector"])

        def source(resource: Resource) -> Source:
            return lambda put: _watch(cluster.connect(options), resource, scope, put)

        return [source(resource) for resource in jobs.served(client, scope)]


def _watch(client: Any, resource: Resource, scope: Any, put: Callable[[News], None]) -> None:
    from tfyard.remote import jobs

    for changes in jobs.watch(client, resource, scope):
        put(_News([(each.listed.title, _changed(each)) for each in changes]))


def _changed(change: Any) -> JobSummary:
    job: JobSummary = change.listed.job
    return _gone(job) if change.is_deleted else job


def _gone(job: JobSummary) -> JobSummary:
    return replace(job, status=replace(job.status, phase="Deleted"))


def _run_sources(options: Mapping[str, Any]) -> list[Source]:
    return [_watch_runs] if target.wants_runs(options) else []


def _watch_runs(put: Callable[[News], None]) -> None:
    from tfyard.local import runs

    before: dict[str, JobSummary] | None = None
    while True:
        found = {job.name: job for job in runs.summaries(datetime.now(UTC))}
        known = before or {}
        changed = [job for job in found.values() if job != known.get(job.name)]
        changed += [_gone(job) for job in known.values() if job.name not in found]
        if changed or before is None:
            put(_News([(f"run/{job.name}", job) for job in changed]))
        before = found
        time.sleep(LOOK_EVERY)
