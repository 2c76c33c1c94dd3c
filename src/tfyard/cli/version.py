"""`tfyard version`."""

import platform

import click

from tfyard import __version__


@click.command("version")
def command() -> None:
    """Print the versions of tfyard and Python, and the operating system."""
    click.echo(f"tfyard {__version__} (Python {platform.python_version()}, {platform.system()})")
