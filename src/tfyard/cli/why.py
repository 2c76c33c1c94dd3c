"""`tfyard why`: the cause of a job's state, the fix, and the evidence."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import cluster
from tfyard.errors import TfyardError, Usage

if TYPE_CHECKING:
    from tfyard.kube.sync import SyncClient
    from tfyard.overview.evidence import Evidence


@click.command("why")
@click.argument("name", metavar="JOB")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Text, or JSON.")
@click.option("-n", "--namespace", default="", metavar="NAME", help="Default: the context's.")
@click.option("--local", is_flag=True, help="Only runs on this machine.")
@cluster.cluster_options
def command(name: str, output: str, namespace: str, local: bool, **options: Any) -> None:
    """Say why a job waits or has failed: the cause in one sentence, the fix, and the evidence with its age.

    JOB is a TFJob of the cluster, or a run on this machine. Nothing is guessed: if the cause is not known, that is
    the answer, with what was looked at.

    Exit codes: 0 nothing is wrong; 1 it has failed; 3 it waits; 4 the cause is not known.

    \b
    Examples:
      tfyard why mnist
      tfyard why mnist -n research -o json
      tfyard why --local mnist
    """
    from tfyard.overview.why import explain

    now = datetime.now(UTC)
    answer = explain(_evidence(name, namespace, local, options), now)
    if output == "json":
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(answer)).decode())
    else:
        from tfyard.overview.why_text import lines

        for line in lines(answer, now):
            click.echo(line)
    sys.exit(answer.code)


def _evidence(name: str, namespace: str, local: bool, options: dict[str, Any]) -> "Evidence":
    from tfyard.kube import BadKubeconfig, Unreachable

    if local:
        return _of_run(name)
    try:
        with cluster.client(**options) as client:
            return _of_job(client, namespace or client.access.namespace, name)
    except (BadKubeconfig, Unreachable) as problem:
        return _instead(name, problem)


def _of_job(client: "SyncClient", namespace: str, name: str) -> "Evidence":
    from tfyard.kube import NotFound, requests
    from tfyard.remote import evidence

    for resource in evidence.TFJOBS:
        try:
            return evidence.gather(client, client.send(requests.get(resource.path(namespace, name))))
        except NotFound:
            continue
    return _instead(name, TfyardError(f"TFJob {name!r} not found in the namespace {namespace}"))


def _of_run(name: str) -> "Evidence":
    from tfyard.local import evidence, runs

    return evidence.gather(*runs.find(name))


def _instead(name: str, problem: TfyardError) -> "Evidence":
    """The run of that name, if the cluster cannot say."""
    try:
        found = _of_run(name)
    except Usage:
        raise problem from None
    click.echo(f"tfyard: {problem}; this is the run {found.name} of this machine", err=True)
    return found
