"""Prints the processes that a dry run would start: directory, own environment, mounts, command."""

from collections.abc import Sequence
from shlex import join, quote
from typing import TYPE_CHECKING

import click

from tfyard.model import TENSORFLOW_CONTAINER

if TYPE_CHECKING:
    from tfyard.local.commands import Planned


def print_text(processes: "Sequence[Planned]") -> None:
    for process in processes:
        _print_process(process)


def _print_process(process: "Planned") -> None:
    kind = "init container" if process.is_init else "container"
    is_main = process.container == TENSORFLOW_CONTAINER
    click.echo(f"{process.task}:" if is_main else f"{process.task}, {kind} {process.container}:")
    for path, directory in process.mounts.items():
        click.echo(f"  # {path} is {directory}")
    click.echo(f"  cd {quote(process.directory)}")
    for name, value in process.env.items():
        click.echo(f"  {name}={quote(value)}")
    click.echo(f"  {join(process.command)}")
