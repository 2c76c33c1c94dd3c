"""`tfyard diff`: what a file would change on a cluster."""

import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from tfyard.cli import cluster
from tfyard.errors import Invalid, TfyardError
from tfyard.model import Manifest
from tfyard.overview.wording import harmless

DIFFERS, TROUBLE = 1, 2
COLOURS = {"+": "green", "-": "red", "#": "yellow"}


@click.command("diff")
@click.argument("file", metavar="FILE")
@cluster.namespace_options
def command(file: str, **options: Any) -> None:
    """Show what a job file or a TFJob would change on the cluster: as a unified diff between what is there and
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

    manifests = _manifests(file, options["namespace"] or None)
    with cluster.connect(options) as client:
        found = changes.diff(client, manifests)
    for change in found:
        if not change.is_none:
            for line in changes.lines(change):
                click.echo(_coloured(harmless(line)))
    return 0 if all(change.is_none for change in found) else DIFFERS


def _manifests(file: str, namespace: str | None) -> list[Manifest]:
    """As `tfyard render` writes them."""
    from tfyard import formats
    from tfyard.cli import files, render
    from tfyard.errors import Usage
    from tfyard.render import RenderOptions

    documents = files.read_documents(file)
    if not any(formats.is_job(document.data) for document in documents):
        raise Usage(f"{files.display_name(file)}: no TFJob and no tfyard job file in it")
    asked = render.Arguments(form="tfjob", namespace=namespace, output=None, options=RenderOptions())
    return [one.manifest for document in documents for one in render.rendered(document, file, asked)]


def _coloured(line: str) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return line
    return click.style(line, fg=COLOURS.get(line[:1]))
