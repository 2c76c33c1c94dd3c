"""`tfyard crds`: the CustomResourceDefinitions of TFJob."""

import click

from tfyard import formats
from tfyard.formats.crd.documents import crds
from tfyard.formats.tfjob.versions import DEFAULT_VERSIONS, chosen


@click.command("crds")
@click.option(
    "--versions",
    default=DEFAULT_VERSIONS,
    show_default=True,
    metavar="A,B",
    help="Versions that the cluster serves, such as v1,v1alpha2,tensorflow.org/v1alpha1; or all.",
)
def command(versions: str) -> None:
    """Print the CustomResourceDefinitions of TFJob.

    Install them with `kubectl apply --server-side`: without it, kubectl keeps a copy in an annotation, for which
    they are too large. Each further version makes every change of a job more expensive for the API server; v1 is
    always served.

    \b
    Examples:
      tfyard crds | kubectl apply --server-side -f -
      tfyard crds --versions all
    """
    click.echo(formats.to_yaml(*crds(chosen(versions))).encode(), nl=False)
