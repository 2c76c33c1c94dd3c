"""`tfyard dev`: a real Kubernetes on this machine, without containers and without root."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tfyard import extras
from tfyard.controlplane.binaries.download import Mirrors
from tfyard.dev import lifecycle
from tfyard.dev.folder import BoxFolder, ReportedState, UpOptions, every_box
from tfyard.errors import Usage
from tfyard.node import interpreter
from tfyard.overview.wording import size

if TYPE_CHECKING:
    from tfyard.dev.status import NodeReport, Report

DEFAULT_NAME = "tfyard-dev"
_RESOURCE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\.[a-z]+/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
NAME = click.option(
    "--name", default=DEFAULT_NAME, show_default=True, help="Name of the cluster; there may be several."
)


@click.group("dev")
def command() -> None:
    """A real Kubernetes on this machine: control plane, operator and a node whose pods are processes.

    \b
    tfyard dev up                 start a cluster, or wait until it is ready
    tfyard dev kubectl ...        call kubectl for it
    tfyard dev status             show what runs in it
    tfyard dev down               stop it and delete its data

    It needs no containers, no images and no root: `python` in a pod is this environment's, as with `tfyard run`.
    """


@command.command("up")
@NAME
@click.option("--binaries", metavar="DIR", default="", help="Use etcd and Kubernetes from this folder.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the apiserver on loopback; default: a free one.",
)
@click.option(
    "--pretend",
    metavar="RESOURCE=N",
    multiple=True,
    help="Let the node offer this resource, such as nvidia.com/gpu=4; may be repeated.",
)
@click.option(
    "--entrypoint",
    metavar="IMAGE=COMMAND",
    multiple=True,
    help="Command of containers with this image that have none; may be repeated.",
)
@click.option(
    "--no-operator", is_flag=True, help="Start the cluster without the operator and the CRDs of TFJob."
)
@click.option(
    "--operator-config",
    metavar="FILE",
    default="",
    help="Config file of the operator, as for `tfyard operator --config`.",
)
@click.option(
    "--python", metavar="PATH", default="", help="The pods' Python; default: the active environment's."
)
@click.option("--kubeconfig", metavar="FILE", default="", help="Add the context to this file, too.")
@click.option(
    "--until-pid",
    metavar="PID",
    type=click.IntRange(1),
    envvar="TFYARD_DEV_UNTIL_PID",
    help="Stop when this process ends, in whatever way; for tests and CI.",
)
@click.option(
    "--kubernetes-mirror",
    metavar="URL",
    default="",
    help="Download Kubernetes from here instead of https://dl.k8s.io/release.",
)
@click.option(
    "--etcd-mirror",
    metavar="URL",
    default="",
    help="Download etcd from here instead of its releases on GitHub.",
)
def up(name: str, until_pid: int | None, kubernetes_mirror: str, etcd_mirror: str, **options: Any) -> None:
    """Start a cluster on this machine and wait until it is ready.

    Kubernetes and etcd are downloaded the first time. A cluster that runs already is left as it is.

    \b
    tfyard dev up
    tfyard dev up --pretend nvidia.com/gpu=4        jobs that ask for GPUs are scheduled
    tfyard dev up --kubeconfig ~/.kube/config       kubectl uses it at once
    tfyard dev up --name other --no-operator        a second cluster, for plain Jobs
    tfyard dev up --name ci --until-pid $$          it stops with this shell; its data stays until `down`
    """
    with extras.needs("dev", "tfyard dev"):
        import tfyard.dev.box  # noqa: F401  a missing package is reported here, not in the log of its process

    folder = BoxFolder.of(name)
    mirrors = Mirrors.chosen(os.environ, kubernetes_mirror, etcd_mirror)
    state = lifecycle.up(folder, _settings(name, options), _say, mirrors, until_pid)
    for line in explanation(folder, state):
        click.echo(line)


def _settings(name: str, options: dict[str, Any]) -> UpOptions:
    return UpOptions(
        name=name,
        binaries=options["binaries"],
        port=options["port"],
        pretend=dict(map(_resource, options["pretend"])),
        operator=not options["no_operator"],
        entrypoint=dict(map(_entrypoint, options["entrypoint"])),
        python=interpreter.find(options["python"] or None, os.environ).path,
        operator_config=_path(options["operator_config"]),
        kubeconfig=_path(options["kubeconfig"]),
    )


def _path(path: str) -> str:
    """An absolute path: the processes of the cluster have another working directory."""
    return str(Path(path).expanduser().absolute()) if path else ""


def _resource(text: str) -> tuple[str, str]:
    """Name and number of an extended resource, as Kubernetes requires them: DOMAIN/NAME and a whole number."""
    name, _, count = text.partition("=")
    if not _RESOURCE.fullmatch(name) or not count.isdigit() or name.startswith("kubernetes.io/"):
        raise Usage(f"--pretend {text}: write DOMAIN/NAME=N, such as nvidia.com/gpu=4")
    return name, count


def _entrypoint(text: str) -> tuple[str, str]:
    image, _, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise Usage(f"--entrypoint {text}: {problem}") from None
    if not image or not words:
        raise Usage(f"--entrypoint {text}: write IMAGE=COMMAND, such as 'me/mnist:1=python /code/main.py'")
    return image, command


def explanation(folder: BoxFolder, state: ReportedState) -> Iterator[str]:
    """What `up` prints: how to use the cluster."""
    of = "" if folder.name == DEFAULT_NAME else f" --name {folder.name}"
    merged, has_operator = folder.settings().kubeconfig, folder.settings().operator
    yield f"{folder.name} is ready: Kubernetes {state.kubernetes} on 127.0.0.1:{state.port}"
    yield from (f"  note: {note}" for note in (*state.notes, state.trouble) if note)
    if merged:
        yield f"{folder.name} is the current context of {merged}"
    else:
        yield f"  export KUBECONFIG={folder.kubeconfig}"
    if has_operator:
        yield "  tfyard submit FILE --follow; tfyard get"
    else:
        yield f"  tfyard render FILE --as plain | tfyard dev kubectl{of} apply -f -"
    yield f"  tfyard dev kubectl{of} get {'tfjobs,pods' if has_operator else 'jobs,pods'}"
    yield f"  {folder.command('status')}; {folder.command('down')}"


@command.command(
    "kubectl", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@NAME
@click.argument("words", metavar="ARGUMENTS...", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str, words: tuple[str, ...]) -> None:
    """Call kubectl for a cluster: the kubectl of its version, with its kubeconfig.

    \b
    tfyard dev kubectl get tfjobs,pods
    tfyard dev kubectl logs -f cancer-chief-0
    tfyard dev kubectl -- --help
    """
    folder = BoxFolder.of(name)
    program = lifecycle.kubectl(folder)
    os.execvpe(program, ["kubectl", *words], {**os.environ, "KUBECONFIG": str(folder.kubeconfig)})


@command.command("status")
@NAME
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format of the output."
)
def status(name: str, output: str) -> None:
    """Show what runs: versions, nodes, jobs, memory and disk, and where the logs are.

    \b
    tfyard dev status
    tfyard dev status -o json

    The exit code is 0 if the cluster is ready, else 1.
    """
    with extras.needs("dev", "tfyard dev"):
        from tfyard.dev.status import report  # with aiohttp, which the extra brings

    cluster = report(BoxFolder.of(name))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(cluster)).decode())
    else:
        for line in lines(cluster):
            click.echo(line)
        if others := other_names(name):
            click.echo(f"  others       {', '.join(others)}")
    if cluster.phase != "ready":
        raise SystemExit(1)


def lines(cluster: "Report") -> Iterator[str]:
    """The report as lines of text."""
    yield f"{cluster.name}: {cluster.phase}{f' ({cluster.message})' if cluster.message else ''}"
    if cluster.running:
        if cluster.server:
            where = f"{cluster.server}, context {cluster.context} in {cluster.kubeconfig}"
            yield f"  Kubernetes   {cluster.kubernetes} at {where}"
        yield from (f"  node         {_node(node)}" for node in cluster.nodes)
        pods = ", ".join(f"{count} {phase}" for phase, count in cluster.pods.items())
        yield from [f"  pods         {pods or 'none'}"] if cluster.nodes else []
        yield from (f"  job          {job.namespace}/{job.name}: {job.phase}" for job in cluster.jobs)
        restarts = ", ".join(f"{name} {count}" for name, count in cluster.restarts.items())
        yield from [f"  restarts     {restarts}"] if restarts else []
        yield f"  memory       {size(cluster.memory)} in {cluster.processes} processes"
    if not cluster.disk:
        return  # there is no such cluster
    left = f"; {size(cluster.free)} are free" if cluster.free or cluster.running else ""
    yield f"  disk         {size(cluster.disk)} in {cluster.folder}{left}"
    yield f"  logs         {cluster.logs}"
    yield from (f"  note         {note}" for note in cluster.notes)


def _node(node: "NodeReport") -> str:
    offers = ", ".join(f"{key} {value}" for key, value in node.allocatable.items() if key != "pods")
    return f"{node.name}, {'ready' if node.ready else 'not ready'}: {offers}"


@command.command("down")
@NAME
@click.option("--keep-data", is_flag=True, help="Keep objects, volumes and logs for the next `up`.")
def down(name: str, keep_data: bool) -> None:
    """Stop a cluster: end its processes and, without --keep-data, delete its data.

    \b
    tfyard dev down
    tfyard dev down --keep-data         the next `up` uses its objects and volumes again
    """
    folder = BoxFolder.of(name)
    if not lifecycle.down(folder, _say, keep_data=keep_data):
        others = ", ".join(other_names(name))
        click.echo(f"there is no {name}{f'; there is {others}' if others else ''}")
    elif keep_data:
        click.echo(f"{name} is down; its data is in {folder.data}, for the next `{folder.command('up')}`")
    else:
        click.echo(f"{name} is down; nothing is left of it")


def other_names(name: str) -> list[str]:
    return [folder.name for folder in every_box() if folder.name != name]


def _say(line: str) -> None:
    click.echo(line, err=True)
