"""`tfyard crds`: the CustomResourceDefinitions that a cluster needs to accept TFJobs."""

import click

from tfyard import formats
from tfyard.formats.crd import crds


@click.command("crds")
def command() -> None:
    """Print the CustomResourceDefinitions of TFJob, in all its versions.

    `tfyard crds | kubectl apply --server-side -f -` installs them. Without --server-side, kubectl would store
    a copy in an annotation, for which they are too large.
    """
    click.echo(formats.to_yaml(*crds()).encode(), nl=False)
