"""`tfyard uninstall`: removes what `tfyard install` created."""

from typing import Any

import click

from tfyard.cli import cluster
from tfyard.remote.installing import installation


@click.command("uninstall")
@cluster.cluster_options
@click.option("--crds", is_flag=True, help="Delete the CRDs, too; refused while there are TFJobs.")
@click.option("--force", is_flag=True, help="Delete all TFJobs and their pods with the CRDs, with --crds.")
def command(crds: bool, force: bool, **options: Any) -> None:
    """Remove the operator and its permissions from the cluster of the current context.

    TFJobs, their pods and the CRDs stay. Pods continue to run, but they are not restarted, and their end is
    not recorded. TFJobs that --replace-kubeflow took over from training-operator are given back to it.

    \b
    Examples:
      tfyard uninstall
      tfyard uninstall --crds       # if there are no TFJobs left
    """
    with cluster.connect(options) as client:
        installation.uninstall(client, crds=crds, force=force, say=click.echo)
    if not crds:
        click.echo("TFJobs and their CRDs were kept; `tfyard uninstall --crds` deletes the CRDs.")
