"""`tfyard install`: installs the operator on a cluster, without Helm."""

from typing import Any

import click
from msgspec.structs import replace

from tfyard import __version__, formats
from tfyard.cli import cluster
from tfyard.formats.tfjob.versions import DEFAULT_VERSIONS, chosen
from tfyard.install import manifests
from tfyard.install.clouds import CONFIGS
from tfyard.install.settings import REPOSITORY, Settings
from tfyard.remote.installing import installation, pod_waits

IMAGE = f"{REPOSITORY}:{__version__}"
KEPT = ("image", "namespaces", "cloud", "replicas", "read_logs")
"""Settings that stay as they are installed if they are not given."""


@click.command("install")
@cluster.cluster_options
@click.option("-n", "--namespace", default="tfyard", show_default=True, help="Namespace of the operator.")
@click.option("--namespaces", metavar="A,B", help="Namespaces whose TFJobs the operator runs; default: all.")
@click.option(
    "--cloud",
    type=click.Choice(sorted(CONFIGS)),
    help="Mount GPU drivers as on this cloud in 2017, and serve the TfJob version of that time.",
)
@click.option("--image", help=f"Image of the operator; default: {IMAGE}.")
@click.option(
    "--replicas",
    type=click.IntRange(1),
    help="Number of operators; with 2, a standby takes over. Default: 1.",
)
@click.option(
    "--versions",
    default=DEFAULT_VERSIONS,
    show_default=True,
    metavar="A,B",
    help="Versions of TFJob that the cluster serves, as for `tfyard crds`.",
)
@click.option(
    "--read-logs",
    is_flag=True,
    default=None,
    help="Let the operator read logs of pods: jobs with `stall` need it.",
)
@click.option(
    "--reset", is_flag=True, help="Use the defaults of what is not given, instead of what is installed."
)
@click.option("--replace-kubeflow", is_flag=True, help="Take TFJobs over from training-operator.")
@click.option(
    "--dry-run",
    type=click.Choice(["client", "server"]),
    help="Install nothing: client prints the manifests, server checks them.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until the operator is the leader.")
@click.option(
    "--timeout", type=float, default=300.0, show_default=True, help="Timeout of --wait, in seconds."
)
def command(namespace: str, **options: Any) -> None:
    """Install the operator, its permissions and the CRDs of TFJob on the cluster of the current context.

    Running it again upgrades: unchanged objects stay, those no longer needed are deleted. --image, --namespaces,
    --replicas, --read-logs and --cloud stay as they are installed unless they are given or --reset is; an image of
    another release becomes that of this one. Before anything is created, every obstacle is reported: missing
    permissions, another TFJob operator, its webhook.

    \b
    Examples:
      tfyard install                                    # for all namespaces
      tfyard install --namespaces team-a,team-b -n ml   # with Roles only, nothing cluster-wide but the CRDs
      tfyard install --dry-run=client > install.yaml    # print what it would apply, by flags and defaults alone
      tfyard install --read-logs                        # for jobs that say for how long they may be silent
      tfyard install --replace-kubeflow                 # take TFJobs over from training-operator
    """
    given = _given(options)
    settings = replace(
        Settings(image=IMAGE, namespace=namespace, versions=tuple(chosen(options["versions"]))), **given
    )
    if options["dry_run"] == "client":
        _print(settings)
        return
    _install(settings, [] if options["reset"] else [name for name in KEPT if name not in given], options)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that are given, by name."""
    given = {name: options[name] for name in KEPT if options[name] is not None}
    if "namespaces" in given:
        given["namespaces"] = tuple(name.strip() for name in given["namespaces"].split(",") if name.strip())
    return given


def _print(settings: Settings) -> None:
    documents = [manifests.namespace(settings), *manifests.objects(settings)]
    click.echo(formats.to_yaml(*documents).encode(), nl=False)


def _install(settings: Settings, unset: list[str], options: dict[str, Any]) -> None:
    with cluster.connect(options) as client:
        settings = installation.with_installed_settings(client, settings, unset, _say)
        installation.run(
            client,
            settings,
            replace_kubeflow=options["replace_kubeflow"],
            dry_run=options["dry_run"] == "server",
            say=_say,
        )
        if options["dry_run"]:
            return
        if options["wait"]:
            pod_waits.until_ready(client, settings, options["timeout"], _say)
            click.echo("The operator is ready.")
    click.echo("Next: kubectl apply -f job.yaml   (or: tfyard render job.yaml | kubectl apply -f -)")


def _say(text: str) -> None:
    click.echo(text)
