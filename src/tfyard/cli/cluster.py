"""Options of every command that speaks to a cluster: kubectl's own."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from tfyard.kube import Access, kubeconfig
from tfyard.kube.sync import SyncClient

F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(command: F) -> F:
    """--kubeconfig, --context, --as, --as-group; `access` makes them into an Access."""
    for option in reversed(
        (
            click.option("--kubeconfig", default="", metavar="FILE", help="Default: as kubectl."),
            click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig."),
            click.option("--as", "as_user", default="", metavar="USER", help="Act as another user."),
            click.option(
                "--as-group", "as_groups", multiple=True, metavar="GROUP", help="And as these groups."
            ),
        )
    ):
        command = option(command)
    return command


def access(kubeconfig_file: str, context: str, as_user: str, as_groups: tuple[str, ...]) -> Access:
    found = kubeconfig.load(os.environ, kubeconfig_file, context)
    if not as_user:
        return found
    return replace(found, user=replace(found.user, impersonate=as_user, impersonate_groups=list(as_groups)))


def client(kubeconfig: str, context: str, as_user: str, as_groups: tuple[str, ...]) -> SyncClient:
    """With the values of `cluster_options`, by their names."""
    return SyncClient(access(kubeconfig, context, as_user, as_groups))
