"""`tfyard describe`: everything that is known of a job."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import cluster, offers, target
from tfyard.errors import Usage
from tfyard.extras import needs
from tfyard.overview.job_view import lines
from tfyard.overview.wording import harmless

if TYPE_CHECKING:
    from tfyard.kube.sync import SyncClient
    from tfyard.remote.code_lookup import CodeLocation, Listed
    from tfyard.remote.jobs import Found


@click.command("describe")
@click.argument("name", metavar="JOB", shell_complete=offers.jobs)
@click.option("--spec", is_flag=True, help="Print the job as it was given and as it is applied, instead.")
@click.option("--code", is_flag=True, help="Print where the job's code is, and its files, instead.")
@click.option("--helper-image", default="", metavar="IMAGE", help="Image of the pod that looks into a claim.")
@cluster.job_options
def command(name: str, spec: bool, code: bool, helper_image: str, **options: Any) -> None:
    """Describe a job: its state in a sentence, every attempt at its tasks (how long each waited for a node, was
    prepared, and ran, and how it ended), its roles, where its output is, conditions, events, GPU-hours.

    \b
    Examples:
      tfyard describe mnist
      tfyard describe @latest --local
      tfyard describe mnist --spec        # as given, and with all defaults
      tfyard describe mnist --code        # where its code is, and which files it has
    """
    found = target.find(name, options)
    if spec:
        _print_spec(found)
        return
    if code:
        _print_code(found, helper_image)
        return
    for line in lines(target.place(found).view(), datetime.now(UTC)):
        click.echo(harmless(line))


def _print_code(found: target.Target, helper_image: str) -> None:
    if isinstance(found, target.LocalRun):
        text = "a run on this machine uses the code where it is; `describe --spec` shows the job file"
        raise Usage(f"{found.record.name}: {text}")
    from tfyard.remote import code_lookup

    with found.client as client:
        where = code_lookup.location(found.found)
        for line in code_lookup.lines(where, _files(client, found.found, where, helper_image)):
            click.echo(harmless(line))


def _files(client: SyncClient, found: Found, where: CodeLocation, helper_image: str) -> list[Listed]:
    from tfyard.remote import code_lookup

    if where.kind != "claim":
        return code_lookup.listed(client, found, where)
    with needs("kubernetes", "looking into a claim"):
        from tfyard.cli import interrupts
        from tfyard.remote import code_transfer
    looking = code_transfer.listed(client.access, found, where, target.say, helper_image)
    return interrupts.run(looking)


def _print_spec(found: target.Target) -> None:
    from tfyard import formats

    if isinstance(found, target.LocalRun):
        click.echo((found.directory.path / "job.yaml").read_text(), nl=False)
        return
    from tfyard.remote import views

    manifest = found.found.manifest
    if given := views.given(manifest):
        by, document = given
        click.echo(f"# as given (by {by})\n{formats.to_yaml(document)}---")
    click.echo("# as applied: with the defaults of the server")
    wanted = ("apiVersion", "kind", "spec")
    click.echo(formats.to_yaml({key: value for key, value in manifest.items() if key in wanted}), nl=False)
