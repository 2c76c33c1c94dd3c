"""`tfyard doctor`: whether a cluster can run jobs, and what to do if it cannot."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from tfyard.cli import cluster
from tfyard.errors import TfyardError
from tfyard.overview.doctor import Finding
from tfyard.overview.wording import harmless
from tfyard.remote.installing import doctor

COLOURS = {"ok": "green", "warning": "yellow", "wrong": "red"}


@click.command("doctor")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)
@cluster.namespace_options
def command(output: str, **options: Any) -> None:
    """Check the cluster of the current context: connection, version, the owner of TFJob's CRD, the operator
    and its leader, your permissions, GPUs and the pods that use them, storage classes, DNS, quotas.

    Each line is ok, warning or wrong, with a fix. The exit code is 1 if something is wrong.

    \b
    Examples:
      tfyard doctor
      tfyard doctor -n ml --as jane       # what jane may do there
      tfyard doctor -o json
    """
    findings = []
    for finding in _findings(options):
        findings.append(finding)
        if output == "text":
            _print(finding)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(findings)).decode())
    sys.exit(int(any(finding.level == "wrong" for finding in findings)))


def _findings(options: dict[str, Any]) -> Iterator[Finding]:
    try:
        with cluster.connect(options) as client:
            yield from doctor.examine(client)
    except TfyardError as problem:
        fix = "`tfyard run` needs no cluster; for one: `kubectl config get-contexts`, `--context`, `--kubeconfig`"
        yield Finding("wrong", "server", str(problem), fix)


def _print(finding: Finding) -> None:
    level = f"{finding.level:8}"
    if not os.environ.get("NO_COLOR"):
        level = click.style(level, fg=COLOURS[finding.level])  # click removes it where there is no terminal
    click.echo(f"{level} {finding.subject:9} {harmless(finding.text)}")
    if finding.fix:
        click.echo(f"{'':18} fix: {finding.fix}")
