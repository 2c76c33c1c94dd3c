"""`tfyard dashboard`: jobs and runs as a web page."""

from __future__ import annotations

import os
import shlex
import sys
import webbrowser
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import click

from tfyard.cli import cluster, interrupts, target
from tfyard.errors import Usage
from tfyard.extras import needs
from tfyard.kube import kubeconfig
from tfyard.model.names import OPERATOR_PORT

if TYPE_CHECKING:
    from tfyard.dashboard.addresses import Address
    from tfyard.dashboard.identity import ViewerIdentity
    from tfyard.sdk.place import Place


@click.command("dashboard")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Local port; default: 8765, or a free one."
)
@click.option(
    "--browser/--no-browser", default=None, help="Open the page in a browser, or only print its address."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Host name by which a proxy reaches the page; repeatable.",
)
@click.option(
    "--in-cluster",
    is_flag=True,
    help="Serve the page to many people: each signs in with a token of the cluster.",
)
@click.option(
    "--bind",
    default="",
    metavar="ADDRESS",
    help="Address to listen on, with --in-cluster; :8080 is all interfaces.",
)
@click.option(
    "--path", default="", help="Path below which the page is, if the proxy leaves it in the address."
)
@click.option(
    "--trust-proxy",
    "proxies",
    multiple=True,
    metavar="NETWORK",
    help="Address or network of a proxy whose X-Forwarded-* headers are believed; repeatable.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the jobs of all namespaces.")
@click.option("-l", "--selector", default="", metavar="K=V", help="Show only TFJobs with these labels.")
@cluster.job_options
def command(
    port: int, browser: bool, hosts: tuple[str, ...], proxies: tuple[str, ...], **options: Any
) -> None:
    """Show jobs in the browser: TFJobs of the cluster and runs of this folder in one list; of each job why it
    waits or failed, its attempts, metrics, logs and events, live, with what can be done about it.

    The page listens at 127.0.0.1 only, and does what you may do, with your kubeconfig. The address that is printed
    opens it once, in one browser; Enter prints another one. With --in-cluster it is a page for many people: each
    signs in with a token of the cluster, or comes through a proxy that sends one, and sees what they may see.

    \b
    Examples:
      tfyard dashboard                    # jobs of your namespace, and runs of this folder
      tfyard dashboard -A                 # jobs of all namespaces
      tfyard dashboard --local --port 9000
      tfyard dashboard --in-cluster --bind :8080 --allow-host jobs.example   # in a Pod; the chart does it
    """
    with needs("dashboard", "tfyard dashboard"):
        from tfyard.dashboard.serving import Serving, serve

    if options["in_cluster"]:
        interrupts.run(_many(options, port, hosts, proxies))
        return
    _refuse(options, MANY, "needs --in-cluster: then everybody signs in")

    def show(address: str) -> None:
        click.echo(f"dashboard: {address}")
        sys.stdout.flush()
        if browser:
            webbrowser.open(address)

    interrupts.run(serve(_identity(options), Serving(port=port, hosts=hosts, proxies=proxies, show=show)))


MANY = {"bind": "--bind", "path": "--path"}
ONE = {"local": "--local", "as_user": "--as", "as_groups": "--as-group"}
"""Options of a page for many people, and of the page of one."""


def _refuse(options: Mapping[str, Any], names: Mapping[str, str], why: str) -> None:
    given = [name for key, name in names.items() if options[key]]
    if given:
        raise Usage(f"{', '.join(given)} {why}")


def _many(
    options: Mapping[str, Any], port: int, hosts: tuple[str, ...], proxies: tuple[str, ...]
) -> Coroutine[Any, Any, None]:
    # `needs` says before how the packages of the page are installed.
    from tfyard.dashboard import bearer
    from tfyard.dashboard.people import OfferedJobs
    from tfyard.dashboard.serving import ServingMany, serve_many
    from tfyard.kube.bind import Bind

    _refuse(
        options, ONE, "cannot be used with --in-cluster: everybody comes with a token, and sees the cluster"
    )
    named = bearer.ALL if options["all_namespaces"] else options["namespace"]
    jobs = OfferedJobs(
        cluster=kubeconfig.load_cluster(os.environ, options["kubeconfig"], options["context"]),
        namespaces=bearer.namespaces(named),
        selector=options["selector"],
    )
    bind = Bind.parse(options["bind"]) if options["bind"] else Bind(port=port or OPERATOR_PORT)

    def show(address: str) -> None:
        click.echo(f"dashboard: {address}")
        sys.stdout.flush()

    serving = ServingMany(bind=bind, hosts=hosts, proxies=proxies, path=options["path"], show=show)
    return serve_many(jobs, serving)


def _identity(options: Mapping[str, Any]) -> ViewerIdentity:
    """The user of this machine, with the kubeconfig and the jobs that the options choose."""
    # `needs` says before how the packages of the page are installed.
    from tfyard.dashboard.identity import JobSource, ViewerIdentity

    sources, has_cluster = [], target.asks_cluster(options)
    if has_cluster:
        access = cluster.connect(options).access
        where = "all namespaces" if options["all_namespaces"] else f"namespace {access.namespace}"
        sources.append(JobSource(f"{where} of {access.cluster.server}", target.of_cluster(options)))
    if not (has_cluster and (options["namespace"] or options["selector"])):
        sources.append(JobSource("this machine", target.runs_here()))

    def find(address: Address) -> Place:
        address.require_name()
        here = {"local": not address.namespace, "namespace": address.namespace}
        return target.to_change(address.title, {**options, **here})

    return ViewerIdentity(
        sources=sources,
        find=find,
        connect=(lambda: cluster.connect(options)) if has_cluster else None,
        options="".join(f" {shlex.quote(word)}" for word in cluster.repeated({**options, "namespace": ""})),
    )
