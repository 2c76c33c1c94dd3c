"""`tfyard get`: jobs of a cluster and runs on this machine in one list, with kubectl's columns and formats."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from msgspec import Struct

from tfyard.cli import cluster, offers, target
from tfyard.cli.output import OUTPUT, Output, print_objects, without_managed_fields
from tfyard.errors import TfyardError, Usage
from tfyard.model import Manifest
from tfyard.model.summary import JobSummary
from tfyard.overview import job_table, table


@click.command("get")
@click.argument("names", metavar="[JOB]...", nargs=-1, shell_complete=offers.jobs)
@click.option("-A", "--all-namespaces", is_flag=True, help="List the jobs of all namespaces.")
@click.option("-l", "--selector", default="", metavar="K=V", help="Only TFJobs with these labels.")
@click.option("-w", "--watch", is_flag=True, help="Print each change, until Ctrl-C.")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    default="table",
    metavar="FORM",
    help="table, wide, name, json, yaml, jsonpath=TEMPLATE or custom-columns=HEADER:PATH,...",
)
@click.option("--no-headers", is_flag=True, help="Print tables without their header.")
@click.option("--show-managed-fields", is_flag=True, help="Keep managedFields in JSON and YAML.")
@cluster.job_options
def command(names: tuple[str, ...], output: Output, watch: bool, **options: Any) -> None:
    """List the TFJobs of the current namespace and the runs of this folder, or show some of them.

    JOB is the name of a TFJob, of a run or of a run's job; @latest is the newest of all. Without a kubeconfig
    there are only runs. -n and -l choose among TFJobs.

    \b
    Examples:
      tfyard get                                # jobs here and there
      tfyard get -A -o wide                     # of all namespaces, with messages
      tfyard get mnist -o yaml                  # the whole object
      tfyard get @latest -o jsonpath='{.status.phase}'
      tfyard get -w                             # and each change
      tfyard get --local                        # only runs on this machine
    """
    if names and options["selector"]:
        raise Usage("-l chooses among all jobs, so no names can be given with it")
    if watch:
        from tfyard.cli.get_watch import follow

        follow(names, output, options)
        return
    failures = _print_named(names, output, options) if names else _print_all(output, options)
    if failures:
        for problem in failures:
            target.say(str(problem))
        sys.exit(max(problem.exit_code for problem in failures))


class Item(Struct, frozen=True):
    """One job: what `-o name` prints of it, and its row or the whole object, whichever is printed."""

    title: str
    row: JobSummary | None = None
    manifest: Manifest | None = None


Failures = list[TfyardError]


def _print_all(output: Output, options: Mapping[str, Any]) -> Failures:
    items, failures = list[Item](), Failures()
    if not options["local"] and cluster.is_configured(options):
        try:
            items += _of_cluster(output, options)
        except TfyardError as problem:
            failures.append(problem)
    if target.wants_runs(options):
        items += _of_runs(output)
    if items or (output.needs_objects and not failures):
        show(items, output, options, single=False)
    elif not failures:
        target.say(_nothing(options))
    return failures


def _print_named(names: Sequence[str], output: Output, options: Mapping[str, Any]) -> Failures:
    items, failures = list[Item](), Failures()
    for name in names:
        try:
            items.append(_item(target.find(name, options), output))
        except TfyardError as problem:
            failures.append(problem)
    if items:
        show(items, output, options, single=len(names) == 1)
    return failures


def show(items: Sequence[Item], output: Output, options: Mapping[str, Any], single: bool) -> None:
    if output.needs_objects:
        documents = [item.manifest or {} for item in items]
        if not options["show_managed_fields"]:
            documents = [without_managed_fields(each) for each in documents]
        print_objects(output, documents, single, headers=not options["no_headers"])
    elif output.form == "name":
        click.echo("\n".join(item.title for item in items))
    else:
        rows = _rows([item.row for item in items if item.row], output, options)
        click.echo("\n".join(table.lines(rows[1:] if options["no_headers"] else rows)))


def _rows(jobs: Sequence[JobSummary], output: Output, options: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A column says where they are if that is more than one place."""
    wide, now = output.form == "wide", datetime.now(UTC)
    namespaced = options["all_namespaces"] or len({job.namespace for job in jobs}) > 1
    rows = (job_table.row(job, now, wide, namespaced) for job in jobs)
    return [job_table.columns(wide, namespaced), *rows]


def _of_cluster(output: Output, options: Mapping[str, Any]) -> list[Item]:
    from tfyard.remote import jobs

    with cluster.connect(options) as client:
        namespace = "" if options["all_namespaces"] else client.access.namespace
        scope = jobs.Scope(namespace, options["selector"])
        if output.needs_objects:
            return [Item(each.title, manifest=each.manifest) for each in jobs.manifests(client, scope)]
        return [Item(each.title, each.job) for each in jobs.summaries(client, scope)]


def _of_runs(output: Output) -> list[Item]:
    from tfyard.local import runs

    found = runs.summaries(datetime.now(UTC))
    if output.needs_objects:
        return [_item(target.LocalRun(*runs.find(each.name)), output) for each in found]
    return [Item(f"run/{each.name}", each) for each in found]


def _item(found: target.Target, output: Output) -> Item:
    if isinstance(found, target.ClusterJob):
        found.client.close()
        return Item(found.found.title, found.found.summary, found.found.manifest)
    from tfyard.local import runs

    row = runs.summary(found.directory, found.record)
    manifest = runs.manifest(found.directory, found.record) if output.needs_objects else None
    return Item(f"run/{row.name}", row, manifest)


def _nothing(options: Mapping[str, Any]) -> str:
    if options["local"] or not cluster.is_configured(options):
        return "no runs here; start one with `tfyard run FILE`"
    what = f"no TFJobs with the labels {options['selector']}" if options["selector"] else "no TFJobs"
    if options["all_namespaces"]:
        return f"{what} in any namespace"
    namespace = cluster.connect(options).access.namespace
    return f"{what} in the namespace {namespace}; `tfyard get -A` looks in all of them"
