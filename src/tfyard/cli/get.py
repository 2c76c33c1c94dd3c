"""`tfyard get`: jobs of a cluster and runs on this machine in one list, with kubectl's columns and formats."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from msgspec import Struct

from tfyard.cli import cluster, offers, several, target
from tfyard.cli.output import OUTPUT, TABLES, OutputForm, print_objects, without_managed_fields
from tfyard.cli.screen.rows import columns
from tfyard.errors import NotPossible, TfyardError, Usage
from tfyard.model import Manifest
from tfyard.model.summary import JobSummary
from tfyard.model.sweep import SweepState
from tfyard.overview import job_table, jsonpath, sweep_text, table
from tfyard.overview.wording import harmless
from tfyard.sdk.place import Jobs, Listed, Place


@click.command("get")
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=offers.jobs)
@click.option("-A", "--all-namespaces", is_flag=True, help="List the jobs of all namespaces.")
@click.option("-l", "--selector", default="", metavar="K=V", help="List only TFJobs with these labels.")
@click.option("--trials", "is_trials", is_flag=True, help="List the trials of sweeps, the best first.")
@click.option("-w", "--watch", is_flag=True, help="Print each change, until Ctrl-C.")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    default="table",
    metavar="FORM",
    help="Format: table, wide, name, json, yaml, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,...",
)
@click.option(
    "--sort-by", default="", metavar="PATH", help="Sort by this field, as in .metadata.creationTimestamp."
)
@click.option("--show-labels", is_flag=True, help="Print the labels as the last column of tables.")
@click.option("--no-headers", is_flag=True, help="Print tables without their header.")
@click.option("--show-managed-fields", is_flag=True, help="Keep managedFields in JSON and YAML.")
@cluster.job_options
def command(names: tuple[str, ...], output: OutputForm, watch: bool, **options: Any) -> None:
    """List the TFJobs of the current namespace and the runs of this folder, or show some of them.

    JOB is the name of a TFJob, a run, the job of a run or a sweep; @latest is the newest of all. Without a
    kubeconfig there are only runs. -n and -l choose among TFJobs. A sweep is one row; --trials lists its trials.

    \b
    Examples:
      tfyard get                                # TFJobs and runs
      tfyard get -A -o wide                     # in all namespaces, with messages
      tfyard get mnist -o yaml                  # the whole object
      tfyard get --sort-by .status.startTime --show-labels
      tfyard get @latest -o jsonpath='{.status.phase}'
      tfyard get --trials cancer-sweep          # its trials, the best first
      tfyard get -w                             # then each change
      tfyard get --local                        # only runs on this machine
    """
    if names and options["selector"]:
        raise Usage("-l chooses among all jobs, so no names can be given with it")
    if watch:
        _watch(names, output, options)
        return
    if options["is_trials"] and output.form in ("table", "wide"):
        _print_trials(names, options)
        return
    options["sort_by"] = jsonpath.parse_path(options["sort_by"]) if options["sort_by"] else None
    options["wants_objects"] = output.needs_objects or options["sort_by"] or options["show_labels"]
    several.end_with((_print_named if names else _print_all)(names, output, options))


class Item(Struct, frozen=True):
    """One job: its name for `-o name`, its row, and the whole object if that is needed."""

    title: str
    row: JobSummary
    sweep: SweepState | None = None
    manifest: Manifest = {}


Failures = list[TfyardError]


def _print_all(_: Sequence[str], output: OutputForm, options: Mapping[str, Any]) -> Failures:
    lists, items, failures = target.lists(options), list[Item](), Failures()
    for jobs in lists:
        try:
            items += _items(jobs, options)
        except TfyardError as problem:
            failures.append(problem)
    if items or (output.needs_objects and not failures):
        _show(items, output, options, single=False)
    elif not failures:
        target.say((lists or [target.runs_here()])[0].nothing())
    return failures


def _items(jobs: Jobs, options: Mapping[str, Any]) -> list[Item]:
    if options["is_trials"]:
        swept = [place for place in jobs.places() if place.sweep()]
        return [_item(trial, options) for place in swept for trial in place.trials()]
    if options["wants_objects"]:
        return [_item(place, options) for place in jobs.places()]
    return [Item(row.title, row.job, row.sweep) for row in jobs.rows()]


def _print_named(names: Sequence[str], output: OutputForm, options: Mapping[str, Any]) -> Failures:
    items, failures = list[Item](), Failures()
    for name in names:
        try:
            place = target.find(name, options)
            chosen = place.trials() if options["is_trials"] else [place]
            items += [_item(each, options) for each in chosen]
        except TfyardError as problem:
            failures.append(problem)
    if items:
        _show(items, output, options, single=len(names) == 1 and not options["is_trials"])
    return failures


def _item(place: Place, options: Mapping[str, Any]) -> Item:
    manifest = place.manifest() if options["wants_objects"] else {}
    return Item(place.title, place.summary(), place.sweep(), manifest)


def _show(items: Sequence[Item], output: OutputForm, options: Mapping[str, Any], single: bool) -> None:
    if path := options["sort_by"]:
        items = sorted(items, key=lambda item: jsonpath.order(path.find(item.manifest, item.manifest)))
    if output.needs_objects:
        documents = [item.manifest for item in items]
        if not options["show_managed_fields"]:
            documents = [without_managed_fields(document) for document in documents]
        print_objects(output, documents, single, headers=not options["no_headers"])
    elif output.form == "name":
        click.echo("\n".join(item.title for item in items))
    else:
        rows: Sequence[table.Row] = _rows(items, output, options)
        if options["show_labels"]:
            labels = ("LABELS", *(_labels(item.manifest) for item in items))
            rows = [(*row, text) for row, text in zip(rows, labels, strict=True)]
        elif output.form == "table" and any(item.sweep for item in items) and (room := columns()):
            rows = table.narrowed(rows, room)
        click.echo("\n".join(table.lines(rows[1:] if options["no_headers"] else rows)))


def _rows(items: Sequence[Item], output: OutputForm, options: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows with their header; the namespace is a column if there are several."""
    now = datetime.now(UTC)
    shape = job_table.TableShape(
        is_wide=output.form == "wide",
        has_namespaces=options["all_namespaces"] or len({item.row.namespace for item in items}) > 1,
        has_sweeps=any(item.sweep for item in items),
    )
    rows = (job_table.row(item.row, now, shape, _progress(item.sweep)) for item in items)
    return [job_table.columns(shape), *rows]


def _progress(sweep: SweepState | None) -> str:
    return sweep_text.progress(sweep) if sweep else ""


def _labels(manifest: Manifest) -> str:
    labels = manifest["metadata"].get("labels") or {}
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items())) or "<none>"


# --- --trials


def _print_trials(names: Sequence[str], options: Mapping[str, Any]) -> None:
    """A table for each sweep: each has parameters of its own."""
    if names:
        places = several.each(lambda name: target.find(name, options), names)
    else:
        places = [place for jobs in target.lists(options) for place in jobs.places() if place.sweep()]
    tables = several.each(lambda place: _trials_of(place, options), places)
    if len(places) > 1:
        tables = [f"{place.name}:\n{text}" for place, text in zip(places, tables, strict=True)]
    click.echo("\n\n".join(tables) if tables else "no sweeps yet; start one with `tfyard sweep FILE`")


def _trials_of(place: Place, options: Mapping[str, Any]) -> str:
    state = place.sweep()
    if state is None:
        raise NotPossible(f"{place.name} is a job: it has no trials")
    rows = sweep_text.trial_rows(state, datetime.now(UTC))
    return "\n".join(map(harmless, table.lines(rows[1:] if options["no_headers"] else rows)))


# --- --watch


def _watch(names: Sequence[str], output: OutputForm, options: Mapping[str, Any]) -> None:
    if output.form not in TABLES:
        raise Usage(f"-w prints {', '.join(TABLES)}; for {output.form}, `tfyard wait` and then `tfyard get`")
    if options["sort_by"] or options["show_labels"] or options["is_trials"]:
        raise Usage("-w prints changes as they come: without --sort-by, --show-labels and --trials")
    names = [_known(name, options) for name in names]
    lists = target.lists(options)
    if not lists:
        raise Usage("there is nothing to watch: no kubeconfig, and no runs here")
    # 20 ms with asyncio, which a list that is printed once does not need.
    from tfyard.sdk.merging import together

    printer = _RowPrinter(names, output, options, namespaced=options["all_namespaces"] or len(lists) > 1)
    for rows in together([jobs.watch() for jobs in lists]):
        printer.show(rows)


def _known(name: str, options: Mapping[str, Any]) -> str:
    """The name of a job or run. The job of a run keeps its name: its next runs are watched, too."""
    place = target.find(name, options)
    return name if name == place.summary().job else place.name


def _order(row: Listed) -> tuple[object, ...]:
    return row.job.namespace or "~", row.job.name  # runs are the last


class _RowPrinter:
    """Prints rows as they come; columns grow and never shrink."""

    def __init__(
        self, names: Sequence[str], output: OutputForm, options: Mapping[str, Any], *, namespaced: bool
    ) -> None:
        self._names, self._output, self._namespaced = set(names), output, namespaced
        self._is_wide = output.form == "wide"
        self._needs_header = not options["no_headers"]
        self._widths: list[int] = []

    def show(self, listed: Sequence[Listed]) -> None:
        now = datetime.now(UTC)
        chosen = [job for job in sorted(listed, key=_order) if self._is_chosen(job)]
        shape = job_table.TableShape(self._is_wide, self._namespaced, any(job.sweep for job in chosen))
        rows = [job_table.row(job.job, now, shape, _progress(job.sweep)) for job in chosen]
        if self._output.form == "name":
            rows = [(job.title,) for job in chosen]
        elif self._needs_header:
            rows.insert(0, job_table.columns(shape))
        self._needs_header = False
        self._widths = table.widths(rows, self._widths)
        for row in rows:
            click.echo(table.line(row, self._widths))

    def _is_chosen(self, listed: Listed) -> bool:
        return not self._names or bool({listed.job.name, listed.job.job} & self._names)
