"""`tfyard describe`: everything that is known of a job."""

from datetime import UTC, datetime
from typing import Any

import click

from tfyard.cli import cluster, offers, target
from tfyard.overview.job_view import JobView, lines
from tfyard.overview.wording import harmless

GIVEN = "kubectl.kubernetes.io/last-applied-configuration"


@click.command("describe")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--spec", is_flag=True, help="Print the job as it was given and as it is applied, instead.")
@cluster.job_options
def command(name: str, spec: bool, **options: Any) -> None:
    """Say how a job is: its state in a sentence, every attempt at its tasks (how long each waited for a node, was
    prepared, and ran, and how it ended), its roles, where its output is, conditions, events, GPU-hours.

    \b
    Examples:
      tfyard describe mnist
      tfyard describe @latest --local
      tfyard describe mnist --spec        # as given, and with all defaults
    """
    found = target.find(name, options)
    if spec:
        _print_spec(found)
        return
    for line in lines(_view(found), datetime.now(UTC)):
        click.echo(harmless(line))


def _view(found: target.Target) -> JobView:
    if isinstance(found, target.LocalRun):
        from tfyard.local import views

        return views.view(found.directory, found.record)
    from tfyard.remote import views as cluster_views

    with found.client as client:
        return cluster_views.view(client, found.found)


def _print_spec(found: target.Target) -> None:
    from tfyard import formats

    if isinstance(found, target.LocalRun):
        click.echo((found.directory.path / "job.yaml").read_text(), nl=False)
        return
    manifest = found.found.manifest
    given = (manifest["metadata"].get("annotations") or {}).get(GIVEN)
    if given:
        import msgspec

        click.echo("# as given (by kubectl apply)")
        click.echo(formats.to_yaml(msgspec.json.decode(given)), nl=False)
        click.echo("---")
    click.echo("# as applied: with the defaults of the server")
    wanted = ("apiVersion", "kind", "spec")
    click.echo(formats.to_yaml({key: value for key, value in manifest.items() if key in wanted}), nl=False)
