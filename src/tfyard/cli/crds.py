"""`tfyard crds`: what a cluster must know before it takes TFJobs."""

import click

from tfyard import formats
from tfyard.formats.crd import crds


@click.command("crds")
def command() -> None:
    """Print the CustomResourceDefinitions of TFJob, in all its versions.

    `tfyard crds | kubectl apply --server-side -f -` installs them; without --server-side, kubectl would keep
    a copy in an annotation, for which they are too large.
    """
    click.echo(formats.to_yaml(*crds()).encode(), nl=False)
