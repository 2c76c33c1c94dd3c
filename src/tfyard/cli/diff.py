"""`tfyard diff`: what `tfyard submit` would change on a cluster."""

import sys
from typing import Any

import click

from tfyard.cli import cluster, job_input, output, problems
from tfyard.kube.sync import SyncClient
from tfyard.model import Manifest
from tfyard.overview.wording import harmless
from tfyard.remote.submitting import changes
from tfyard.remote.submitting.prepare import Submission, prepare
from tfyard.remote.submitting.submission import pack

DIFFERS = 1


@click.command("diff", cls=job_input.JobCommand)
@job_input.options
@output.text_or_json
@cluster.namespace_options
def command(**options: Any) -> None:
    """Show what `tfyard submit` would change on the cluster: as a unified diff of the job and of the objects
    that come with it. FILE and the options are those of `submit`. The server computes the result by a dry run;
    nothing is changed.

    Lines with # name what cannot change while the job runs. Of a job that does not exist, every line is new.

    Exit codes: 0 no difference; 1 there are differences; 2 an error.

    \b
    Examples:
      tfyard diff job.yaml
      tfyard diff job.yaml --set worker=4 -n ml || echo changed
      tfyard diff train.py --worker 2
    """
    sys.exit(_diff(options))


def _diff(options: dict[str, Any]) -> int:
    with cluster.connect(options) as client:
        differences = changes.diff(client, _manifests(client, options))
    changed = [change for change in differences if not change.is_none]
    if options["output"] == "json":
        output.print_json(changed)
    else:
        for line in (line for change in changed for line in changes.lines(change)):
            click.echo(output.coloured(harmless(line)))
    return DIFFERS if changed else 0


def _manifests(client: SyncClient, options: dict[str, Any]) -> list[Manifest]:
    """The manifests that `tfyard submit` would apply."""
    fields = {name: value for name, value in options.items() if name in Submission.__struct_fields__}
    submission = Submission(**job_input.with_target(fields))
    prepared = prepare(submission, client.access.namespace)
    problems.report(prepared.warnings, prepared.text)
    return pack(client, prepared, submission).manifests
