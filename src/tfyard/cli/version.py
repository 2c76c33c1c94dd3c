"""`tfyard version`."""

import platform

import click

from tfyard import __version__


@click.command("version")
def command() -> None:
    """Print the version of tfyard and of what it runs on."""
    click.echo(f"tfyard {__version__} (Python {platform.python_version()}, {platform.system()})")
