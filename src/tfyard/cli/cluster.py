"""Options of commands that speak to a cluster: kubectl's own, and that of helper pods."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.kube import Access, kubeconfig
from tfyard.kube.sync import SyncClient

F = TypeVar("F", bound=Callable[..., Any])
ASKING, WRITING = 10.0, 30.0
"""Seconds that a server may take to answer a question, and to take in what is installed."""


def _contexts(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from tfyard.cli import offers

    return offers.contexts(context, incomplete)


def _namespaces(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from tfyard.cli import offers

    return offers.namespaces(context, incomplete)


def cluster_options(command: F) -> F:
    """--kubeconfig, --context, --as, --as-group, --request-timeout; `connect` takes their values."""
    return _access_options(_timeout(WRITING)(command))


class _Seconds(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """With a unit, too, as kubectl takes it: 5s, 1m."""
        if isinstance(value, str) and value.endswith(("s", "m", "h")):
            from tfyard.formats import durations

            value = durations.parse(value) or value
        return super().convert(value, param, ctx)


def _timeout(default: float) -> Callable[[F], F]:
    return click.option(
        "--request-timeout",
        type=_Seconds(min=0, min_open=True),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help="Give up on a server that does not answer.",
    )


def _access_options(command: F) -> F:
    for option in reversed(
        (
            click.option("--kubeconfig", default="", metavar="FILE", help="Default: as kubectl."),
            click.option(
                "--context",
                default="",
                metavar="NAME",
                shell_complete=_contexts,
                help="Context of the kubeconfig.",
            ),
            click.option("--as", "as_user", default="", metavar="USER", help="Act as another user."),
            click.option(
                "--as-group",
                "as_groups",
                multiple=True,
                metavar="GROUP",
                help="Act as a member of these groups.",
            ),
        )
    ):
        command = option(command)
    return command


def namespace_options(command: F) -> F:
    """The options of `cluster_options`, and -n; `connect` takes their values."""
    of_namespace = click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        shell_complete=_namespaces,
        help="Default: the context's.",
    )
    return _access_options(of_namespace(_timeout(ASKING)(command)))


def job_options(command: F) -> F:
    """The options of commands about a job, wherever it runs: those of `namespace_options`, and --local."""
    return namespace_options(
        click.option("--local", is_flag=True, help="Only runs on this machine.")(command)
    )


helper_user_option = click.option(
    "--helper-user",
    type=click.IntRange(0),
    metavar="UID",
    help="User of the helper pod. Default: that of the job's pods, if it names one, else 65532.",
)


def connect(options: Mapping[str, Any]) -> SyncClient:
    """With the values of `cluster_options` or `namespace_options`."""
    found = access(*(options[name] for name in ("kubeconfig", "context", "as_user", "as_groups")))
    if options.get("namespace"):
        found = replace(found, namespace=options["namespace"])
    return SyncClient(found, options["request_timeout"])


def is_configured(options: Mapping[str, Any]) -> bool:
    """Whether a cluster is meant at all: without one, the runs of this machine are all there is."""
    chosen = any(options.get(name) for name in ("kubeconfig", "context", "namespace", "as_user"))
    return chosen or kubeconfig.is_present(os.environ)


def access(kubeconfig_file: str, context: str, as_user: str, as_groups: tuple[str, ...]) -> Access:
    if as_groups and not as_user:
        raise Usage("--as-group needs --as: groups are those of another user")
    found = kubeconfig.load(os.environ, kubeconfig_file, context)
    if not as_user:
        return found
    return replace(found, user=replace(found.user, impersonate=as_user, impersonate_groups=list(as_groups)))
