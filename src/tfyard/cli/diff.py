"""`tfyard diff`: what a file would change on a cluster."""

import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from tfyard.cli import cluster
from tfyard.errors import Invalid, TfyardError
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.overview.wording import harmless

DIFFERS, TROUBLE = 1, 2
COLOURS = {"+": "green", "-": "red", "#": "yellow"}


@click.command("diff")
@click.argument("file", metavar="FILE")
@cluster.namespace_options
def command(file: str, **options: Any) -> None:
    """Show what `tfyard submit FILE` would change on the cluster: as a unified diff between what is there and
    what would be, for the job and all that comes with it. The server itself is asked, by a dry run; nothing is
    changed.

    Lines with # say what cannot change while the job runs, or takes effect only for tasks that start later. A
    job that does not exist is all new.

    Exit codes: 0 nothing differs; 1 something does; 2 it could not be told.

    \b
    Examples:
      tfyard diff job.yaml
      tfyard diff job.yaml -n ml || echo changed
    """
    try:
        sys.exit(_diff(file, options))
    except Invalid as error:
        from tfyard.cli import problems

        problems.report(error.problems, error.text, error.name)
    except TfyardError as error:
        click.echo(f"tfyard: {error}", err=True)
    except OSError as error:
        click.echo(f"tfyard: {f'{error.filename}: ' if error.filename else ''}{error.strerror}", err=True)
    sys.exit(TROUBLE)


def _diff(file: str, options: Mapping[str, Any]) -> int:
    from tfyard.remote import changes

    with cluster.connect(options) as client:
        found = changes.diff(client, _manifests(client, file, options["namespace"]))
    for change in found:
        if not change.is_none:
            for line in changes.lines(change):
                click.echo(_coloured(harmless(line)))
    return 0 if all(change.is_none for change in found) else DIFFERS


def _manifests(client: SyncClient, file: str, namespace: str) -> list[Manifest]:
    """As `tfyard submit` would write them."""
    from tfyard.cli import problems
    from tfyard.remote.prepare import Submission, prepare
    from tfyard.remote.submission import pack

    submission = Submission(target=file, namespace=namespace)
    prepared = prepare(submission, client.access.namespace)
    problems.report(prepared.warnings, prepared.text)
    return pack(client, prepared, submission).manifests


def _coloured(line: str) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return line
    return click.style(line, fg=COLOURS.get(line[:1]))
